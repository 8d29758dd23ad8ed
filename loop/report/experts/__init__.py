"""How well metrics agree with experts, as JSON data, Markdown, HTML and a figure."""

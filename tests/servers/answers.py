"""What the loopback servers of the tests answer: HTTP responses as bytes."""

import json

HTTP_REASONS = {
    200: "OK",
    302: "Found",
    307: "Temporary Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    408: "Request Timeout",
    409: "Conflict",
    425: "Too Early",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


def http(status, body=b"", *, content="application/json", headers=()):
    """Return a whole response with the right length."""
    lines = [
        f"HTTP/1.1 {status} {HTTP_REASONS[status]}",
        f"Content-Type: {content}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def json_http(status, data, **options):
    """Return a whole response that carries `data`."""
    return http(status, json.dumps(data).encode(), **options)


def models(*names):
    """Return the answer of ``GET /v1/models``."""
    data = [
        {"id": name, "object": "model", "created": 1, "owned_by": "tests", "root": name}
        for name in names
    ]
    return json_http(200, {"object": "list", "data": data})


def completion(content, *, finish="stop", model="tiny", **message):
    """Return the data of one chat completion; its tokens are counted in words."""
    words = len(content.split()) if isinstance(content, str) else 0
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "system_fingerprint": "tests",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish,
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": words,
            "total_tokens": 100 + words,
            "prompt_tokens_details": {"cached_tokens": 90},
        },
    }


def to_schema(schema):
    """Return the smallest value that follows `schema`: its first choice everywhere."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return to_schema(schema["anyOf"][0])
    if schema.get("type") == "object":
        wanted = schema.get("required", ())
        return {name: to_schema(schema["properties"][name]) for name in wanted}
    return {"array": [], "integer": 0, "number": 0}.get(schema.get("type"), "")


def plain_answer(request):
    """Return the completion that a good server gives to a request, as data."""
    wanted = request.get("response_format")
    if wanted is None:
        return completion("Hello there", finish="length", model=request["model"])
    answer = to_schema(wanted["json_schema"]["schema"])
    return completion(json.dumps(answer), model=request["model"])


def follows(schema, value):
    """Whether `value` follows `schema`, as far as our contracts use JSON schema."""
    if "anyOf" in schema:
        return any(follows(part, value) for part in schema["anyOf"])
    if "enum" in schema and value not in schema["enum"]:
        return False
    kind = schema.get("type")
    if kind == "object":
        parts = schema["properties"]
        return (
            isinstance(value, dict)
            and set(schema["required"]) <= value.keys() <= parts.keys()
            and all(follows(parts[name], part) for name, part in value.items())
        )
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 10**9)
        return (
            isinstance(value, list)
            and least <= len(value) <= most
            and all(follows(schema["items"], part) for part in value)
        )
    if kind == "string":
        longest = schema.get("maxLength", 10**9)
        return isinstance(value, str) and len(value) <= longest
    if kind == "integer":
        return type(value) is int and value >= schema.get("minimum", value)
    return True

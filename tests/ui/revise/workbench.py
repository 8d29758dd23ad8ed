"""``ranloop`` with the page Revise in its workbench, for the tests of that page."""

from loop.cli.main import app
from loop.ui import app as workbench
from loop.ui.pages import overview, revise

if __name__ == "__main__":
    if revise.build not in workbench.BUILDERS:
        workbench.BUILDERS = (overview.build, revise.build)
    app()

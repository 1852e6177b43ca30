"""The command `sylvan`. Commands are imported when they are used, so that `sylvan --help` is quick."""

import sys


def main() -> None:
    """Run the command line; what is missing is said in one line."""
    try:
        from sylvan.app.cli.main import sylvan  # noqa: PLC0415 (click is an extra)
    except ImportError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit(f'The command line needs {error.name}: pip install "sylvan[cli]"')
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(130)
    sylvan()

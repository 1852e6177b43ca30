"""`python -m sylvan.app.cli` is the command `sylvan`."""

from sylvan.app.cli import main

if __name__ == "__main__":
    main()

"""`python -m sylvan.cli` is the command `sylvan`."""

from sylvan.cli import main

if __name__ == "__main__":
    main()

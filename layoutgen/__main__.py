"""`python -m layoutgen`."""

from layoutgen.cli import main

if __name__ == "__main__":
    main()

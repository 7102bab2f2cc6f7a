"""`python -m phinets`, for torchrun."""

from phinets.cli import main

if __name__ == "__main__":
    main()

"""`python -m phinets`, as torchrun wants it."""

from phinets.cli import main

if __name__ == "__main__":
    main()

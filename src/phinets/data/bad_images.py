"""The images of a run that can't be used: each counted once, none silently, and not too many."""

from collections.abc import Iterable

from phinets.config.errors import UserError
from phinets.data.images import BadImage


class BadImages:
    """Knows every bad image that was met."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.known: dict[str, str] = {}
        self._fresh: list[BadImage] = []

    def add(self, bad: Iterable[BadImage]) -> None:
        """Take note of those that are not known yet."""
        for one in bad:
            if one.where not in self.known:
                self.known[one.where] = one.why
                self._fresh.append(one)

    def drain(self) -> list[BadImage]:
        """Those that were met since the last time this was asked."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def require_few(self) -> None:
        """Refuse to go on where there are more than the limit."""
        if len(self.known) <= self.limit:
            return
        first = "; ".join(f"'{where}': {why}" for where, why in list(self.known.items())[:5])
        raise UserError(
            f"{len(self.known)} images can't be used, and --max-bad-images is {self.limit}: {first}"
            f"{'; …' if len(self.known) > 5 else ''}. Mend them, or raise --max-bad-images."
        )

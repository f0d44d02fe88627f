"""Counts and prints what the comparisons find."""


class Checks:
    """Counts and prints; a line holds the worst of what it covers."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, case, what, ok, detail):
        self.passed += bool(ok)
        self.failed += not ok
        print(f"{'PASS' if ok else 'FAIL'} {case}: {what}: {detail}", flush=True)

    def worst(self, case, what, measured):
        """`measured`: (value, limit, label) triples; the one that uses most of its limit is shown."""
        def used(measure):
            value, limit, _ = measure
            return value / limit if limit > 0 and value == value else 0.0 if value == 0 else float("inf")
        value, limit, label = max(measured, key=used)
        self.check(case, what, value <= limit, f"{value:.2e} of {limit:.2e} ({label})")

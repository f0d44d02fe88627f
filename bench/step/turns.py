"""Two or more programs that run steps of the same work in turn."""
from workplace import progress


def take_turns(sides, rounds, steps, work):
    """Runs `steps` steps of each side in each round, in the other order every second time, and ends the sides. `work`: what progress
    calls it. Returns {side: its rounds}, {side: its peak}, and the peak that the first side, Plimsoll, had planned."""
    measured = {side.name: [] for side in sides}
    try:
        for side in sides:
            side.go(1)  # the first step compiles and touches what the others find
        for number in range(rounds):
            progress(f"{work}, round {number + 1} of {rounds}")
            for side in sides if number % 2 == 0 else reversed(sides):
                measured[side.name].append(side.go(steps))
        peaks = {side.name: side.peak_bytes() for side in sides}
        return {"rounds": measured, "peaks": peaks, "planned": sides[0].finish()["planned_peak_bytes"]}
    finally:
        for side in sides:
            side.stop()

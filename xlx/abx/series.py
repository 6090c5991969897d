"""The checkpoints of a training history."""

from collections.abc import Sequence

from xlx.models import loading


def history(
    name: str, *, leave_out: Sequence[int] = (), recorded: bool = False
) -> list[loading.Checkpoint] | list[str]:
    """The checkpoints of a series in the order of training; a model without a history is itself.

    ``recorded``: those whose weights are not shipped, too (`loading.recorded_checkpoints`);
    `leave_out` names steps to skip: the paper leaves out step 450,000, where its training was
    unstable (footnote 7). Raises ValueError for a step that the series does not have.
    """
    try:
        checkpoints = (loading.recorded_checkpoints if recorded else loading.checkpoints)(name)
    except loading.NoHistoryError:
        if leave_out:
            raise
        return [name]
    steps = [checkpoint.step for checkpoint in checkpoints]
    unknown = [step for step in leave_out if step not in steps]
    if unknown:
        raise ValueError(
            f"{name} has no checkpoint {unknown[0]} to leave out: it has "
            f"{', '.join(map(str, steps))}"
        )
    return [checkpoint for checkpoint in checkpoints if checkpoint.step not in leave_out]

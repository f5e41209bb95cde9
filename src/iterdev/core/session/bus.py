"""What becomes of the state when somebody puts a message on the bus, or takes one off."""

from iterdev.core.session import capability_gaps, consensus, events
from iterdev.core.session.attempts import Attempted
from iterdev.core.session.state import Shared
from iterdev.core.types import Severity


class Heard(Attempted):
    """A draft that takes in what was said."""

    def _change_bus(self, event: events.BusEvent, at: float) -> None:
        match event:
            case events.MessageSent():
                self._listen(event, event.sent_at or at)
            case events.MessageDeleted(number):
                self._messages = [message for message in self._messages if message.number != number]
            case events.MessagesCleared():
                self._messages.clear()
                self._shared.clear()

    def _listen(self, message: events.MessageSent, at: float) -> None:
        if message.task and message.task in self._state.running:
            self._last_words[message.task] = message.summary
        if message.kind == "state_update" and message.data:
            before = self._state.shared.get(message.sender)
            data = {**(before.data if before else {}), **message.data}
            self._shared[message.sender] = Shared(at=at, data=data)
        if message.kind == consensus.BLOCKED and message.sent_at is None:
            self._hear_dispute(message)
        if message.kind == capability_gaps.GAP and message.sent_at is None:
            self._hear_gap(message)

    def _hear_dispute(self, message: events.MessageSent) -> None:
        if consensus.pauses(message):
            self._disputes[consensus.gate_of(message)] = message.summary
        elif consensus.severity(message.data) is not Severity.low:
            self._warnings.append(f"the team does not agree: {message.summary}")

    def _hear_gap(self, message: events.MessageSent) -> None:
        """Where nobody wants to be asked, the work goes on with what there is."""
        if self._state.policy.auto:
            self._warnings.append(f"the team lacks something: {message.summary}")
        else:
            self._disputes[capability_gaps.gate_of(message)] = message.summary

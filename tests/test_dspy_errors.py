"""DSPy hears of what a call breaks with by its own error of the same meaning, and of a user's own engine's as it is."""

import dspy
import pytest
from dspy import lm15

from medexam import errors
from medexam.dspy_internals import dspy_errors, from_dspy_error, to_dspy_error

KINDS = [
    (errors.TransportError, lm15.TransportError, dspy.LMTransportError),
    (errors.ConfigurationError, lm15.ConfigurationError, dspy.LMConfigurationError),
    (errors.UnsupportedFeatureError, lm15.UnsupportedFeatureError, dspy.LMUnsupportedFeatureError),
    (errors.ProviderError, lm15.ProviderError, dspy.LMProviderError),
    (errors.AuthError, lm15.AuthError, dspy.LMAuthError),
    (errors.BillingError, lm15.BillingError, dspy.LMBillingError),
    (errors.RateLimitError, lm15.RateLimitError, dspy.LMRateLimitError),
    (errors.CallTimeoutError, lm15.TimeoutError, dspy.LMTimeoutError),
    (errors.ServerError, lm15.ServerError, dspy.LMServerError),
    (errors.InvalidRequestError, lm15.InvalidRequestError, dspy.LMInvalidRequestError),
    (errors.FilteredError, lm15.InvalidRequestError, dspy.LMInvalidRequestError),
    (errors.ContextLengthError, lm15.ContextLengthError, dspy.ContextWindowExceededError),
    (errors.UnsupportedModelError, lm15.UnsupportedModelError, dspy.LMUnsupportedModelError),
]


@pytest.mark.parametrize(("ours", "theirs", "public"), KINDS)
def test_a_broken_call_becomes_dspys_error_and_back(ours, theirs, public) -> None:
    details = {"status": 418, "retry_after": 3.0, "provider": "acme", "provider_code": "odd", "request_id": "r1"}
    error, own = ours("slow down", **details), theirs("slow down", **details)
    assert type(to_dspy_error(error)) is theirs
    assert (to_dspy_error(error).message, vars(to_dspy_error(error))) == (own.message, vars(own))
    back = from_dspy_error(own)
    assert isinstance(error, type(back))
    assert back.message == "slow down"
    assert {name: getattr(back, name) for name in details} == details
    with pytest.raises(public) as raised, dspy_errors("tiny"):
        raise error
    with pytest.raises(public) as expected, dspy_errors("tiny"):
        raise own
    assert str(raised.value) == str(expected.value)


def test_what_is_not_supported_is_named() -> None:
    error = errors.UnsupportedFeatureError("no tools", feature="tools")
    assert to_dspy_error(error).feature == from_dspy_error(to_dspy_error(error)).feature == "tools"


def test_an_errors_text_tells_status_and_provider() -> None:
    assert str(errors.ServerError("busy", status=503, provider="acme")) == "busy (acme, HTTP 503)"
    assert str(errors.TransportError("lost", status=503)) == "lost"

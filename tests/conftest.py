"""What tests of several rooms share."""

import pytest


@pytest.fixture(scope="session")
def interrupt():
    """A function that makes a fit stop by itself."""
    from scwormhole.train import _fit

    def interrupt(monkeypatch, phase, look):
        """Stop a fit, as Ctrl-C does, in a phase after so many checkpoints of it."""
        real = _fit.train

        def train(name, *args, keep, **options):
            kept = []

            def counted(progress):
                keep(progress)
                kept.append(progress)
                if name == phase and len(kept) == look:
                    raise KeyboardInterrupt

            if name == phase and look == 0:
                raise KeyboardInterrupt
            return real(name, *args, keep=counted, **options)

        monkeypatch.setattr(_fit, "train", train)

    return interrupt

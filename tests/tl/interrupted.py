"""Embeds a tissue into a store, slowly, until it is ended; run by ``test_tl_store.py``, not by pytest."""

import resource
import signal
import sys
import time

import anndata

import scwormhole as wh
from scwormhole.tl import _store

BLOCK = 64
GOOD = 2  # blocks before the disk is full, or before each takes a minute


def main(how: str, cells: str, model: str, store: str) -> None:
    _store.BLOCK = BLOCK
    original = wh.Wormhole.embed_blocks

    def slowly(*args, **options):
        for number, found in enumerate(original(*args, **options)):
            if how == "full" and number == GOOD:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
            yield found
            if how == "slowly" and number >= GOOD:
                time.sleep(60)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is born deaf to it
    wh.Wormhole.embed_blocks = slowly
    wh.tl.embed(anndata.read_h5ad(cells), wh.Wormhole.load(model), store=store)


if __name__ == "__main__":
    main(*sys.argv[1:])

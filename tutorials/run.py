"""Executes notebooks in place, `python tutorials/run.py [notebook ...]`, and keeps of outputs what a reader needs.

Progress bars, log lines and whatever else goes to stderr are dropped, with what differs from run to run without meaning
anything. A cell that fails ends the run, unless it is marked `raises-exception` as one that shows an error.
"""

import argparse
import base64
import io
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parent
SECONDS = 900  # for a cell; a whole notebook is meant to take less than 300 on two cores


def execute(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a new run, made in a folder."""
    made = nbformat.from_dict(notebook)
    NotebookClient(
        made, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return tidy(made)


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook without bars, logs and times."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {"tags": cell.metadata["tags"]} if "tags" in cell.metadata else {}
        if cell.cell_type == "code":
            cell.outputs = merged(output for output in cell.outputs if output.get("name") != "stderr")
            for output in cell.outputs:
                if "data" in output:  # a figure is told by its picture alone
                    output.metadata = {}
                    if "image/png" in output.data:
                        output.data = {"image/png": small(output.data["image/png"])}
    return notebook


def merged(outputs: Iterable[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return outputs with what was printed in one piece, however many the kernel sent it in."""
    kept: list[nbformat.NotebookNode] = []
    for output in outputs:
        if kept and output.output_type == kept[-1].output_type == "stream":
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def small(picture: str) -> str:
    """Return a PNG, in base64, with a palette of 256 colours: a quarter of the size, and to the eye the same."""
    drawn = Image.open(io.BytesIO(base64.b64decode(picture)))
    if drawn.mode == "P":
        return picture
    white = Image.new("RGBA", drawn.size, "white")
    flat = Image.alpha_composite(white, drawn.convert("RGBA")).convert("RGB")
    kept = io.BytesIO()
    flat.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
    return base64.b64encode(kept.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of them by default")
    for path in parser.parse_args().notebooks or sorted(FOLDER.glob("*.ipynb")):
        began = time.perf_counter()
        made = execute(nbformat.read(path, as_version=4), path.parent)
        nbformat.write(made, path)
        print(
            f"{path.name}: {time.perf_counter() - began:.0f} s, {path.stat().st_size / 1024:.0f} KiB", file=sys.stderr
        )


if __name__ == "__main__":
    main()

"""The paper's experiments in one command, and a verdict on each of its cells.

``plan`` says what is run, ``store`` keeps it in Optuna studies, ``run`` does the work, ``collect``
turns the studies into one JSON document, and everything shown is drawn from that document alone.
Nothing is imported here: the command line asks for ``plan``'s names before torch is needed.
"""

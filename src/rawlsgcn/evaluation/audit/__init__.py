"""The statistics of the audit: who is worst off under a model, by how much, and how sure that is.

:mod:`.node_scores` reduces predictions to a few numbers for each node, :mod:`.grouping` and
:mod:`.group_statistics` group the nodes, :mod:`.resampling`, :mod:`.intervals` and
:mod:`.permutation_tests` are the statistics, :mod:`.worst_off` and :mod:`.model_audit` the
questions they answer, and :mod:`.findings` holds the answers.
"""

"""The number of threads: the caller's own, fewer on a busy machine, and one in a forked child."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import rawlsgcn as rg
from rawlsgcn._core import threads
from rawlsgcn._core.threads import limited_threads, threads_for, threads_for_graph, training_threads
from rawlsgcn.graphs.synthetic_graph import synthetic


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def in_new_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


@pytest.mark.parametrize(
    ("entries", "busy", "one"),
    [(100, False, True), (10**6, False, False), (10**6, True, True), (10**8, False, False)],
)
def test_a_second_thread_is_used_only_where_it_pays(monkeypatch, two_threads, entries, busy, one):
    monkeypatch.setattr(threads, "_is_busy", lambda: busy)
    with threads_for(entries):
        assert torch.get_num_threads() == (1 if one else 2)
    assert torch.get_num_threads() == 2


def test_a_limit_holds_for_the_calling_thread_alone(two_threads):
    running, done = threading.Event(), threading.Event()

    def another():
        torch.get_num_threads()
        running.set()
        done.wait(10)
        return torch.get_num_threads()

    with ThreadPoolExecutor(1) as pool:
        counted = pool.submit(another)
        running.wait(10)
        with limited_threads(1):
            assert torch.get_num_threads() == 1
            assert in_new_thread(torch.get_num_threads) == 2
            done.set()
            assert counted.result() == 2
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("busy", [False, True])
def test_training_gives_way_on_a_busy_machine(monkeypatch, two_threads, busy):
    monkeypatch.setattr(threads, "_is_busy", lambda: busy)
    with training_threads() as update:
        update()
        assert torch.get_num_threads() == (1 if busy else 2)
        monkeypatch.setattr(threads, "_is_busy", lambda: False)
        with training_threads():  # one inside another knows the whole number
            assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 2


def test_a_small_graph_uses_one_thread_whatever_the_load(two_threads):
    x, edges = torch.zeros(1000, 1000), torch.zeros(2, 20_000, dtype=torch.long)
    with threads_for_graph(x, edges):
        assert torch.get_num_threads() == 1
    with threads_for_graph(x, edges, x):
        assert torch.get_num_threads() == 2
    with threads_for_graph(x.to_sparse_csr(), edges, edges):
        assert torch.get_num_threads() == 1


def test_the_load_of_the_machine_changes_no_bit(monkeypatch, two_threads):
    graph, found = synthetic(4000), []  # not small: 2.4 million features
    for busy in (False, True):
        monkeypatch.setattr(threads, "_is_busy", lambda busy=busy: busy)
        found.append(rg.fit(graph, "rawlsgcn-grad", seeds=2, epochs=5).logits)
    assert torch.equal(*found)


def test_limits_end_with_an_error_too(two_threads):
    with pytest.raises(ZeroDivisionError), training_threads():
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), limited_threads(1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


def test_we_are_among_those_who_run():
    assert threads._runnable() >= 1


@pytest.mark.slow
def test_calls_from_several_threads_at_once_are_right():
    graph = synthetic()
    methods = ["gcn", "rawlsgcn-graph", "rawlsgcn-grad", "dsgcn"] * 2

    def work(method):
        scale = rg.balance(graph.edge_index, num_nodes=graph.num_nodes).scale
        return scale, rg.fit(graph, method, seeds=1, epochs=4).logits

    alone = [work(method) for method in methods]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, methods))
    for one, other in zip(alone, together, strict=True):
        assert all(map(torch.equal, one, other))


FORKED = """
import os, signal, torch, rawlsgcn as rg
from rawlsgcn.graphs.synthetic_graph import synthetic
torch.set_num_threads(2)
graph = synthetic(20_000)

def work():
    scale = rg.balance(graph.edge_index, num_nodes=graph.num_nodes).scale
    result = rg.fit(graph, "rawlsgcn-grad", seeds=1, epochs=3)
    return scale.numpy(), result.logits.numpy()  # numpy: a loop of torch's own would hang here

scale, logits = work()
child = os.fork()
if child == 0:
    signal.alarm(60)  # a hang ends as a failure
    own = work()
    alike = (own[0] == scale).all() and abs(own[1] - logits).max() < 1e-4
    os._exit(0 if alike else 1)
_, status = os.waitpid(child, 0)
print("status", status)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.slow
def test_a_forked_child_neither_hangs_nor_differs():
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.stdout.strip() == "status 0", done.stderr

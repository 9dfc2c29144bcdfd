"""Long work: Ctrl-C, progress, other threads, other processes."""

import os
import signal
import threading
import time

import pytest

import warmset as ws
from warmset._progress import reporter

#: A minute of work at the least.
LONG = ws.Study("ospert10-fig5", sets=1000)


def test_ctrl_c_ends_work():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        LONG.run()
    # And nothing is left of it.
    assert ws.check([ws.Task("1ms", "5ms")], m=1)


def test_ctrl_c_ends_simulations_and_batches(tmp_path):
    tasks = [ws.Task("1us", "10us"), ws.Task("2us", "11us")]
    path = tmp_path / "schedule.wtrace"
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        ws.simulate(tasks, m=1, horizon="100h", trace=path)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        ws.generate(100_000_000, cap=20)


def test_an_error_of_progress_ends_work():
    seen = []

    def progress(what, done, total):
        seen.append((what, done, total))
        if len(seen) == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        LONG.run(progress=progress)
    assert len(seen) == 3 and all(0 <= done <= total for _, done, total in seen)


def test_progress_ends_at_the_total():
    seen = []
    ws.check_batch(ws.generate(100, cap=2), tests="GFB", progress=lambda *s: seen.append(s))
    assert seen[-1] == ("judging task sets", 100, 100)


def test_a_bar_is_shown(capsys):
    ws.generate(10, cap=2, progress=True)
    assert "drawing task sets" in capsys.readouterr().err


def test_a_stage_has_one_bar_and_the_next_one_another(capsys):
    show = reporter(True)
    for done in (0, 1, 2):
        show("first", done, 4)
    show("second", 1, 2)
    show("second", 2, 2)
    said = capsys.readouterr().err
    # A bar that is closed ends its line.
    bars = [line.split("\r")[-1].split(":")[0] for line in said.split("\n")]
    assert bars == ["first", "second", ""]
    assert "2/4" in said and "2/2" in said


def test_other_threads_go_on_meanwhile():
    ended = threading.Event()
    counted = [0]

    def count():
        while not ended.is_set():
            counted[0] += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    seen = []

    def progress(*said):
        seen.append(counted[0])
        if len(seen) == 5:
            raise InterruptedError

    other.start()
    with pytest.raises(InterruptedError):
        LONG.run(progress=progress)
    ended.set()
    other.join()
    # It counted between any two reports, while the work went on.
    assert seen == sorted(set(seen))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_says_why_it_cannot_work():
    ws.generate(1, cap=1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ws.generate(1, cap=1)
            os.write(write, b"worked")
        except ws.Error as e:
            os.write(write, str(e).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        assert "was forked from one that has worked" in told.read()
    os.waitpid(child, 0)


def test_several_threads_may_call_at_once():
    expected = ws.check_batch(ws.generate(200, cap=2), tests="GFB").to_dict()
    answers = []

    def judge():
        answers.append(ws.check_batch(ws.generate(200, cap=2), tests="GFB").to_dict())

    threads = [threading.Thread(target=judge) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 8

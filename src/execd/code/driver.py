# SPDX-License-Identifier: Apache-2.0
# driver.py - runs the cells of a Python context inside its interpreter
#
# It is compiled into the daemon and read by the interpreter from fd 3, the
# private channel. Requests come as "run NUMBER LENGTH\n" and so many bytes of
# code; "ack\n" answers a frame "show". What goes back are frames "WORD NUMBER
# LENGTH\n" and a payload (src/execd/code/frame.h). stdout and stderr are not
# touched by it: they are pipes of the process, so that what C code and children
# print is seen as well.
#
# A cell is compiled as a module; when its last statement is an expression
# (and no ";" follows), its value is the result. Cells share the names of
# __main__ and may await at top level.
#
# SIGINT is KeyboardInterrupt while a cell runs, and nothing otherwise. While a
# frame is written it is held back: a torn frame would end the context.
def main(fd):
    import sys

    # Modules of the cell's folder must not stand in for those of Python.
    here = sys.path.pop(0) if sys.path and sys.path[0] == "" else None
    import __future__
    import ast
    import builtins
    import json
    import linecache
    import os
    import signal
    import threading
    import traceback

    if here is not None:
        sys.path.insert(0, here)

    text_max = 1024 * 1024  # of text/plain, bytes
    payload_max = 4 * 1024 * 1024
    error_max = 64 * 1024
    lines_max = 500
    await_flag = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
    coroutine_flag = 0x80  # CO_COROUTINE
    rich = (
        ("text/html", "_repr_html_"),
        ("text/markdown", "_repr_markdown_"),
        ("text/latex", "_repr_latex_"),
        ("image/svg+xml", "_repr_svg_"),
        ("image/png", "_repr_png_"),
        ("image/jpeg", "_repr_jpeg_"),
        ("application/pdf", "_repr_pdf_"),
        ("application/json", "_repr_json_"),
        ("application/javascript", "_repr_javascript_"),
    )
    owner = os.getpid()
    lock = threading.RLock()
    module = sys.modules["__main__"]
    names = module.__dict__

    class State:
        run = 0
        count = 0
        flags = await_flag
        armed = False  # a cell runs: SIGINT is for it
        held = 0  # a frame is being written
        pending = False
        loop = None

    def on_interrupt(_signal, _frame):
        if not State.armed:
            return
        if State.held:
            State.pending = True
            return
        raise KeyboardInterrupt

    def send(word, payload=b"", answered=False):
        if os.getpid() != owner:
            return  # a child that the cell forked
        head = "%s %d %d\n" % (word, State.run, len(payload))
        with lock:
            State.held += 1
            try:
                left = memoryview(head.encode() + payload)
                while left:
                    left = left[os.write(fd, left):]
                if answered:
                    channel.readline()  # "ack"
            finally:
                State.held -= 1
        if State.pending and not State.held:
            State.pending = False
            if State.armed:
                raise KeyboardInterrupt

    def flush():
        for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
            try:
                getattr(sys, name).flush()
            except Exception:
                pass

    def cut(text, limit):
        data = text.encode("utf-8", "backslashreplace")
        if len(data) <= limit:
            return data.decode()
        kept = data[:limit].decode("utf-8", "ignore")
        return "%s... (%d bytes more)" % (kept, len(data) - limit)

    def as_text(mime, value):
        if isinstance(value, str):
            return cut(value, payload_max)
        if isinstance(value, (bytes, bytearray)):
            import base64

            return base64.b64encode(value).decode()
        return json.dumps(value, default=repr)

    # The type is asked, not the object: some objects have every attribute.
    def ask(value, name, *args, **kwargs):
        method = getattr(type(value), name, None)
        if method is None or isinstance(value, type):
            return None
        try:
            return method(value, *args, **kwargs)
        except Exception:
            return None

    def bundle_of(value):
        data = {}
        found = ask(value, "_repr_mimebundle_", include=None, exclude=None)
        if isinstance(found, tuple):
            found = found[0] if found else None
        if isinstance(found, dict):
            for mime, part in found.items():
                if isinstance(mime, str) and part is not None:
                    data[mime] = as_text(mime, part)
        for mime, name in rich:
            if mime in data:
                continue
            part = ask(value, name)
            if isinstance(part, tuple):
                part = part[0] if part else None
            if part is not None:
                data[mime] = as_text(mime, part)
        if "text/plain" not in data:
            data["text/plain"] = repr(value)
        data["text/plain"] = cut(data["text/plain"], text_max)
        return data

    # While the cell goes on its value must be told before it prints more.
    def send_result(value, word="result"):
        data = bundle_of(value)
        payload = json.dumps(data).encode()
        if len(payload) > payload_max:
            # Too large to be told: its text must do.
            for mime in sorted(data, key=lambda m: len(data[m]), reverse=True):
                if mime != "text/plain":
                    sys.stderr.write(
                        "result left out: %s of %d bytes\n"
                        % (mime, len(data[mime])))
            text = cut(data["text/plain"], error_max)
            payload = json.dumps({"text/plain": text}).encode()
        flush()
        send(word, payload, word == "show")

    def display(*values):
        for value in values:
            send_result(value, "show" if State.armed else "result")

    def send_error(kind, value, tb, cell):
        first = tb
        while first is not None and first.tb_frame.f_code.co_filename != cell:
            first = first.tb_next
        step = first
        while step is not None and step.tb_next is not None:
            if kind is KeyboardInterrupt and \
                    step.tb_next.tb_frame.f_code.co_filename == __file__:
                step.tb_next = None  # where the signal was received
            else:
                step = step.tb_next
        try:
            evalue = str(value)
        except Exception:
            evalue = "<text of the exception failed>"
        try:
            lines = "".join(
                traceback.format_exception(kind, value, first)).splitlines()
        except Exception:
            lines = ["%s: %s" % (kind.__name__, evalue)]
        if len(lines) > lines_max:
            half = lines_max // 2
            lines = lines[:half] + ["..."] + lines[-half:]
        lines = [cut(line, 2000) for line in lines]
        payload = json.dumps({
            "ename": kind.__name__,
            "evalue": cut(evalue, error_max),
            "traceback": lines,
        }).encode()
        send("error", payload)

    def evaluate(code):
        value = eval(code, names)
        if not code.co_flags & coroutine_flag:
            return value
        import asyncio

        if State.loop is None or State.loop.is_closed():
            State.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(State.loop)
        task = State.loop.create_task(value)
        try:
            return State.loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            try:
                State.loop.run_until_complete(task)
            except BaseException:
                pass
            raise

    def compile_part(tree, cell, mode):
        code = compile(tree, cell, mode, State.flags, True)
        for name in __future__.all_feature_names:
            bit = getattr(__future__, name).compiler_flag
            State.flags |= code.co_flags & bit
        return code

    def run_cell(source, cell):
        tree = compile(source, cell, "exec",
                       State.flags | ast.PyCF_ONLY_AST, True)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) \
                and not source.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        body = compile_part(tree, cell, "exec")
        value = compile_part(last, cell, "eval") if last else None
        evaluate(body)
        if value is None:
            return
        found = evaluate(value)
        if found is not None:
            builtins._ = found
            send_count()
            send_result(found)

    def send_count():
        if not State.counted:
            State.counted = True
            send("count", str(State.count).encode())

    def run(source):
        State.count += 1
        State.counted = False
        cell = "<cell %d>" % State.count
        lines = source.splitlines(True)
        linecache.cache[cell] = (len(source), None, lines, cell)
        signal.signal(signal.SIGINT, on_interrupt)
        failure = None
        try:
            State.pending = False
            State.armed = True
            send("begin")
            run_cell(source, cell)
            State.armed = False
        except BaseException:
            State.armed = False
            failure = sys.exc_info()
        if os.getpid() != owner:
            flush()
            os._exit(0)
        flush()
        send_count()
        if failure:
            send_error(failure[0], failure[1], failure[2], cell)
        else:
            send("done")

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace",
                               line_buffering=True, write_through=False)
    builtins.display = display
    os.set_inheritable(fd, False)
    signal.signal(signal.SIGINT, on_interrupt)
    sys.argv = [""]
    channel = open(fd, "rb", closefd=False)
    send("ready", ("Python %d.%d.%d" % sys.version_info[:3]).encode())
    while True:
        words = channel.readline().split()
        if words == [b"ack"]:
            continue  # of a frame that the cell itself made up
        if len(words) != 3:
            os._exit(0)  # the daemon is gone
        State.run = int(words[1])
        source = channel.read(int(words[2])).decode("utf-8", "replace")
        run(source)


main(3)

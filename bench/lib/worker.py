"""One peer engine in a process of its own, driven from standard input as docs/bench.md says of `locution bench --blocks`.
usage: worker.py ENGINE MODEL.onnx THREADS FOLDER INPUT=FILE ...     outputs go to FOLDER/output_0.npy ..."""
import json
import os
import resource
import sys
import time

import numpy as np


def onnxruntime(path, inputs, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    try:  # the second run reuses the buffers of the outputs
        for _ in range(2):
            session.run_with_iobinding(binding)
    except RuntimeError:  # a model that declares a wrong rank for an output
        last = {}
        return (lambda: last.update(out=session.run(None, inputs))), (lambda: last["out"]), ort.__version__
    return (lambda: session.run_with_iobinding(binding)), binding.copy_outputs_to_cpu, ort.__version__


def openvino(path, inputs, threads):
    import openvino as ov
    core = ov.Core()
    model = core.read_model(path)
    model.reshape({name: list(array.shape) for name, array in inputs.items()})
    # Without the hint it computes float32 models in bfloat16 where the CPU has it.
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for name, array in inputs.items():
        request.set_tensor(name, ov.Tensor(array, shared_memory=True))
    outputs = lambda: [request.get_output_tensor(i).data.copy() for i in range(len(compiled.outputs))]
    return (lambda: request.infer(share_outputs=True)), outputs, ov.__version__.split("-")[0]


ENGINES = {"onnxruntime": onnxruntime, "openvino": openvino}


def main():
    engine, path, threads, folder, *given = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr

    def say(message):
        answers.write("@@" + json.dumps(message) + "\n")
        answers.flush()

    try:
        inputs = {name: np.load(file) for name, file in (text.split("=", 1) for text in given)}  # alive as long as the engine, which may read in place
        start = time.perf_counter()
        run, outputs, version = ENGINES[engine](path, inputs, int(threads))
        compile_s = time.perf_counter() - start
        run()
        os.makedirs(folder, exist_ok=True)
        for i, array in enumerate(outputs()):
            np.save(os.path.join(folder, f"output_{i}.npy"), array)
        start = time.perf_counter()
        while time.perf_counter() - start < 0.3:
            run()
        start = time.perf_counter()
        run()
        one = time.perf_counter() - start
    except Exception as e:  # whatever it is, the coordinator has to hear of it
        return say({"ok": 0, "err": f"{type(e).__name__}: {str(e)[:1000]}"})
    batch = 1 if one > 3e-4 else max(1, int(1e-3 / max(one, 1e-6)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say({"ok": 1, "info": {"compile_s": compile_s, "rss_mb": peak, "version": version}, "est": one, "batch": batch})
    for line in sys.stdin:
        end, samples, before = time.perf_counter() + float(line), [], os.times()
        while True:
            switches, start = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw, time.perf_counter()
            for _ in range(batch):
                run()
            samples.append([(time.perf_counter() - start) / batch, resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches])
            if time.perf_counter() >= end:
                break
        after = os.times()
        say({"s": samples, "cpu": after.user + after.system - before.user - before.system})


if __name__ == "__main__":
    main()

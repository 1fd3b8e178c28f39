// `locution run`: once, with a line for each output.
#include <chrono>
#include <cmath>
#include <cstdio>

#include "io.h"
#include "options.h"

namespace locution::tools {

Status runCommand(const Options& options) {
  GivenInputs given;
  LOCUTION_ASSIGN_OR_RETURN(Model model, openModel(options, &given));
  runtime::Context context(model.program, runtime::ThreadPool::create(options.threads));
  LOCUTION_RETURN_IF_ERROR(bindInputs(options, given, *model.program, context));
  auto start = std::chrono::steady_clock::now();
  LOCUTION_RETURN_IF_ERROR(context.run().withContext(options.model));
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  LOCUTION_RETURN_IF_ERROR(writeOutputs(options, *model.program, context));
  const auto& ports = model.program->executable().outputs;
  for (size_t i = 0; i < ports.size(); ++i) {
    const hostops::HostValue& value = context.outputValue(i);
    if (!value.isTensor()) {
      std::printf("%s %s of %zu\n", ports[i].name.c_str(), value.isSequence() ? "sequence" : "optional",
                  value.sequence.size());
      continue;
    }
    const Tensor& t = value.tensor;
    std::printf("%s", portText(ports[i].name, t.dtype(), t.dims()).c_str());
    if (t.dtype() != DType::String && dtypeClass(t.dtype()) != DTypeClass::Complex && t.elements() > 0) {
      double low = INFINITY, high = -INFINITY, sum = 0;
      for (int64_t k = 0; k < t.elements(); ++k) {
        double x = t.elementAsDouble(k);
        low = std::isnan(x) ? x : std::min(low, x);
        high = std::isnan(x) ? x : std::max(high, x);
        sum += x;
      }
      std::printf(" min %.6g max %.6g mean %.6g", low, high, sum / static_cast<double>(t.elements()));
    }
    std::printf("\n");
  }
  std::printf("time %.3f ms\n", ms);
  return Status::ok();
}

}  // namespace locution::tools

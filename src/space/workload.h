// A kernel as records and language models know it: what it computes on which layouts, free of names. Two kernels that mean the same
// loops, with equal element types and the same inputs constant, are one workload: scheduled once, measured once.
//
// Shapes, element types, access maps, bodies, epilogues, the numbers that stand in them and which inputs are constants are part of a
// workload, since plans depend on them. The contents of constants are not, nor are names, the order of inputs and outputs, and inputs
// that nothing reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loop/compute.h"
#include "support/status.h"

namespace locution::space {

struct Workload {
  std::string text;          ///< as printNameFree gives it (loop/computation_text.h)
  uint64_t hash = 0;         ///< of the text
  loop::Computation kernel;  ///< what the text means: the same for equal texts, whatever kernel they were made from
  /// 16 hexadecimal digits.
  std::string id() const;
};

/// The workload that `kernel` is; kernels of one kernelKey (driver/kernels.h) are the same one. Its inputs and outputs are in the order
/// of first use. A kernel with expressions so deep that the parser refuses them (hundreds of operands nested) keeps its own nodes.
Workload canonical(const loop::Computation& kernel);

/// canonical(kernel).hash, without the kernel.
uint64_t workloadHash(const loop::Computation& kernel);

/// The workload of a kernel's text. That of `canonical(k).text` is `canonical(k)`; other text of a kernel is brought to this form.
/// Errors: text that is not a well-formed kernel.
Result<Workload> parseWorkload(std::string_view text);

}  // namespace locution::space

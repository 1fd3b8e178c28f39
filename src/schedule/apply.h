// Applies a Plan to a Computation: the only way from stages to loops. An illegal plan is data (a reason code), never an exception.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "loop/compute.h"
#include "schedule/plan.h"

namespace locution::schedule {

enum class Illegal : uint8_t {
#define REASON(Name, text) Name,
#include "schedule/reasons.inc"
#undef REASON
};
std::string_view reasonText(Illegal reason);

/// An operand copied before the kernel runs: once, at compile time, when it is a constant; else by a kernel of its own.
struct PackedOperand {
  loop::BufferRef source;         ///< an input of the computation
  loop::BufferRef packed;         ///< a param of the function in its place
  loop::Computation computation;  ///< source -> packed
};

struct Lowered {
  loop::Function function;  ///< params: inputs (or what they are packed into) in the computation's order, then outputs
  std::vector<PackedOperand> packs;
};

struct ApplyError {
  Illegal reason;
  int32_t step = -1;  ///< index of the offending step; -1: the plan as a whole
};

std::variant<Lowered, ApplyError> apply(const loop::Computation& computation, const Plan& plan);

/// A computation that is given as loops needs no plan.
loop::Function rawFunction(const loop::Computation& computation);

}  // namespace locution::schedule

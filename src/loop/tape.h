// The interpreter's program: loop IR compiled to a flat list of instructions, each a function on slots of Words. A slot holds
// the lanes of one node; slots never move, so instructions point straight at them. Lazy Select, `if` and loops are jumps.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "loop/compute.h"
#include "loop/scalar.h"
#include "support/status.h"

namespace locution::loop {

struct Machine;
struct Instruction;
using Handler = const Instruction* (*)(const Instruction*, Machine&);

/// One buffer's memory: a parameter's packed bytes, or Words of the interpreter's own.
struct BufferPlan {
  const Buffer* buffer = nullptr;
  std::vector<int64_t> extents, strides;  ///< strides in elements
  DType dtype = DType::F32;
  int lanes = 1;  ///< of the element type
  int64_t elements = 1;
  std::byte* bytes = nullptr;  ///< parameters
  std::vector<Word> words;     ///< others
};

/// One index of a load or a store, with its dim's extent and stride.
struct IndexPlan {
  const Word* at = nullptr;
  int64_t extent = 0, stride = 0;
  int64_t step = 0;  ///< between lanes: 1 where the index has the access's lanes, else 0
};
struct AccessPlan {
  BufferPlan* buffer = nullptr;
  std::vector<IndexPlan> indices;
  const Word* mask = nullptr;
  int lanes = 1;
};

struct Instruction {
  Handler run = nullptr;
  Word* out = nullptr;
  const Word *a = nullptr, *b = nullptr, *c = nullptr;
  int32_t lanes = 1;
  DType type = DType::F32, result = DType::F32;  ///< of the operands, of `out`
  uint8_t aux = 0;                               ///< operator or intrinsic
  int32_t target = 0;                            ///< jumps: relative
  AccessPlan* access = nullptr;
};

struct Machine {
  int64_t stepsLeft = -1;
  std::string error;
};

/// The handlers (tape_ops.cpp).
Handler binaryHandler(BinaryOp op, DType type);
Handler castHandler(DType from, DType to);
Handler intrinsicHandler();
Handler broadcastHandler();
Handler copyHandler();
Handler rampHandler();
Handler selectHandler();  ///< lane by lane
Handler reduceHandler();
Handler loadHandler(const AccessPlan& plan);
Handler storeHandler(const AccessPlan& plan);
Handler poisonHandler();  ///< fills access->buffer's words
Handler jumpHandler();
Handler jumpIfFalseHandler();  ///< by `a`
/// out[0] = a, out[1] = a + b; jumps when the range is empty.
Handler loopBeginHandler();
/// ++out[0]; jumps back while out[0] < out[1].
Handler loopNextHandler();
Handler stopHandler();

}  // namespace locution::loop

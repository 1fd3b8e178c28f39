// A compiled model: code, constants and a short list of instructions over slots. Built by the driver, run in process as it is,
// or written to and mapped from a .loc file (format.h). Holds no compiler code. Immutable once built; contexts run it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/shape.h"
#include "core/target.h"
#include "core/tensor.h"
#include "hostops/host_op.h"
#include "runtime/control.h"
#include "runtime/kernel_abi.h"
#include "support/ids.h"
#include "support/status.h"

namespace locution::runtime {

using SlotId = Id<struct SlotTag>;

/// Where a slot's bytes are.
enum class SlotSpace : uint8_t {
  Arena,     ///< offset in the context's arena (a multiple of 64)
  Constant,  ///< `index` into Executable::constants, `offset` bytes into it
  Input,     ///< `index` of the model input
  Output,    ///< `index` of the model output: written in the caller's buffer
  Dynamic,   ///< allocated by the instruction that writes it: shape depends on data; also strings, sequences
};

struct Slot {
  DType dtype = DType::F32;
  std::vector<int64_t> dims;  ///< -1: known at run time only (Dynamic)
  SlotSpace space = SlotSpace::Arena;
  int32_t index = 0;
  int64_t offset = 0;
  std::string name;  ///< the graph value's, for messages and the profiler
};

/// A kernel's code within Executable::code, and facts for the profiler.
struct KernelInfo {
  std::string name;      ///< "conv_3x3_64_64_relu.2"
  std::string op;        ///< the anchor's op type
  std::string sentence;  ///< the plan, readable
  int64_t codeOffset = 0;
  int64_t codeSize = 0;
  int64_t parallelExtent = 1;
  double flops = 0, bytes = 0;  ///< of one run; of a buffer read in part (a table of embeddings) what is read counts
  std::vector<std::string> ops = {};  ///< the op types of the nodes that are fused into it, in the graph's order
};

struct RunKernel {
  int32_t kernel = 0;
  std::vector<SlotId> buffers;  ///< in the order of the function's params
};
/// A host operator (hostops/): C++ on tensors, may allocate its outputs.
struct RunHostOp {
  std::string op;               ///< a name of hostops.inc
  std::string nodeName;         ///< "node 12 'nms' (NonMaxSuppression)" for messages
  std::string attrs;            ///< serialised attributes (hostops/attrs.h)
  std::vector<SlotId> inputs;   ///< invalid: left out
  std::vector<SlotId> outputs;  ///< invalid: not wanted
};
/// Fails with a message that names node, value and range when an element of an integer slot is outside [low, high].
struct CheckRange {
  SlotId slot;
  int64_t low = 0, high = 0;
  std::string nodeName;
};
/// Copies all bytes of one static slot to another of the same size (a model output that is also a constant or an input ...).
struct CopySlot {
  SlotId from, to;
};
/// If, Loop, Scan, or a part of the model whose shapes depend on data. Runs regions of the executable in contexts of their own.
struct RunRegion {
  RegionKind kind = RegionKind::Call;
  std::string nodeName;          ///< "node 12 'decoder' (Loop)" for messages
  std::string attrs;             ///< serialised attributes (Scan's axes and directions)
  std::vector<SlotId> inputs;    ///< the node's; invalid: left out
  std::vector<SlotId> captured;  ///< outer values that the regions read
  std::vector<SlotId> outputs;   ///< invalid: not wanted
  std::vector<int32_t> regions;  ///< into Executable::regions
};
using Instruction = std::variant<RunKernel, RunHostOp, CheckRange, CopySlot, RunRegion>;

struct Port {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> dims;  ///< -1: known at run time only (outputs)
  SlotId slot;
  ValueKind kind = ValueKind::Tensor;
  /// Not empty: the value that was compiled in, serialised (hostops::writeTensor): an input that decided shapes takes no other.
  std::string required = {};
};

/// Pages of machine code, made executable once and then immutable.
class CodeMemory;
class Program;
struct Executable;

/// Makes code for a region once the shapes of its inputs are known. The driver implements it; a .loc file has none.
class RegionCompiler {
 public:
  virtual ~RegionCompiler() = default;
  /// `inputs`: the region's own, then what it captures. Programs are kept for the shapes met last. Safe to call from several threads.
  virtual Result<std::shared_ptr<const Program>> compile(const std::vector<hostops::HostValue>& inputs) = 0;
};

/// A body or a branch. Its inputs are its own (an iteration's state ...), then the captured ones.
struct Region {
  std::string name;               ///< "then_branch of node 12 'check' (If)"
  std::vector<int32_t> captures;  ///< into RunRegion::captured
  /// Null: it is compiled on first use, or is an error to run. Shared: executables are immutable.
  std::shared_ptr<const Executable> code;
  // Shared: holds the region's graph, which contexts of several callers compile from.
  std::shared_ptr<RegionCompiler> compiler;
  /// Without code: what only a run tells. Without a compiler either: what running it says; its shapes are known, but make no sense.
  std::string open;
};

struct Executable {
  std::string modelName;
  std::string compilerVersion;
  TargetSpec target;
  std::map<std::string, std::string> metadata;
  std::vector<Port> inputs, outputs;
  std::vector<Slot> slots;
  std::vector<Tensor> constants;  ///< as kernels want them (packed); 64-byte aligned
  std::vector<KernelInfo> kernels;
  std::vector<std::byte> code;  ///< every kernel's code, each at a 64-byte boundary
  std::vector<Instruction> instructions;
  std::vector<Region> regions;
  int64_t arenaBytes = 0;
  double flops = 0;  ///< of one inference

  /// Of all constants, those of regions included.
  int64_t weightBytes() const;
};

/// An Executable ready to run in this process. Shared by contexts.
class Program {
 public:
  /// Checks that this CPU has the features the target names, that every slot, offset and kernel lies within bounds, and makes
  /// the code executable.
  static Result<std::shared_ptr<const Program>> load(std::shared_ptr<const Executable> executable);
  /// Maps a .loc file: constants are views of the mapping. Errors: not a .loc, another version, another CPU, damaged.
  static Result<std::shared_ptr<const Program>> loadFile(const std::string& path);
  /// The same from the bytes of a .loc file; they are shared, not copied, and must be 64-byte aligned. `name` is for messages.
  static Result<std::shared_ptr<const Program>> loadBytes(std::shared_ptr<Storage> bytes, const std::string& name);
  ~Program();
  const Executable& executable() const { return *executable_; }
  KernelFunction kernel(int32_t index) const { return kernels_[static_cast<size_t>(index)]; }
  /// What a RunHostOp instruction calls, with its attributes parsed.
  struct HostCode {
    const hostops::HostOp* op = nullptr;
    hostops::Attrs attrs;
    uint64_t seed = 0;
  };
  const HostCode& hostCode(size_t instruction) const { return hostCode_.at(instruction); }
  /// The region's code where it is compiled ahead, else null.
  const std::shared_ptr<const Program>& region(int32_t index) const { return regions_[static_cast<size_t>(index)]; }

 private:
  Program() = default;
  std::map<size_t, HostCode> hostCode_;
  std::shared_ptr<const Executable> executable_;
  std::shared_ptr<CodeMemory> code_;
  std::vector<KernelFunction> kernels_;
  std::vector<std::shared_ptr<const Program>> regions_;  // shared with nested contexts
};

/// Errors: a region that is compiled on first use (a file holds no compiler), named with the values whose shapes are open.
/// Writes the file under a temporary name in the same folder and renames it: never half a file.
Status writeExecutable(const Executable& executable, const std::string& path);

}  // namespace locution::runtime

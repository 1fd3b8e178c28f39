// Regions whose shapes only a run tells: compiled when they are first met, kept while they come back.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/prepare.h"
#include "graph/graph.h"
#include "runtime/executable.h"

namespace locution::driver {

/// Main inputs whose values some node of the main region needs when it is compiled, there being no host operator that takes them as
/// they come: they are compiled in.
std::vector<graph::ValueId> neededMainInputs(const graph::Graph& graph);

/// `graph` for exactly these inputs: their shapes, and the values of needed ones. Errors: an input of another kind or dtype.
Status specialiseTo(graph::Graph& graph, const std::vector<hostops::HostValue>& inputs);

/// The same for a whole model, whose symbols are bound once for all inputs, and whose inputs that decide shapes are compiled in.
/// Errors: as passes::specialise.
Status specialiseModel(graph::Graph& graph, const std::vector<hostops::HostValue>& inputs);

/// Compiles a region's graph for each set of input shapes it meets. A region that meets ever new ones (a loop whose state grows) is
/// compiled once more without them: what host operators can do, they do, and only the rest is compiled for shapes. Not so a model:
/// most of it hangs on its inputs' shapes. Keeps the programs used last: at most kMaxPrograms, and no more than kMaxBytes of weights
/// unless one alone has them.
class LazyRegion : public runtime::RegionCompiler {
 public:
  static constexpr size_t kMaxPrograms = 32;
  static constexpr int64_t kMaxBytes = int64_t{512} << 20;
  /// Shapes that are met before the region is compiled without them.
  static constexpr int64_t kMaxSpecialised = 8;

  enum class Of : uint8_t { Region, Model };
  LazyRegion(std::shared_ptr<Session> session, std::shared_ptr<const graph::Graph> graph, Of of = Of::Region);
  Result<std::shared_ptr<const runtime::Program>> compile(const std::vector<hostops::HostValue>& inputs) override;
  /// Compilations so far.
  int64_t compilations() const { return compilations_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const runtime::Program> program;  // shared with contexts
    int64_t bytes = 0;
    uint64_t lastUse = 0;
  };
  std::string keyOf(const std::vector<hostops::HostValue>& inputs) const;
  std::shared_ptr<const runtime::Program> find(const std::string& key);
  void keep(Entry entry);
  std::shared_ptr<const runtime::Program> compileOpen();

  std::shared_ptr<Session> session_;           // shared: every region of a model compiles with it
  std::shared_ptr<const graph::Graph> graph_;  // shared with `verify`
  const Of of_;
  std::vector<bool> needed_;  // of each main input: its value is compiled in
  std::mutex mutex_;          // of what follows
  std::mutex compiling_;      // one compilation at a time, so that equal ones happen once
  std::vector<Entry> entries_;
  enum class Open : uint8_t { Untried, Ready, Useless } isOpen_ = Open::Untried;
  std::shared_ptr<const runtime::Program> open_;  // shared with contexts
  uint64_t uses_ = 0;
  int64_t compilations_ = 0;
};

}  // namespace locution::driver

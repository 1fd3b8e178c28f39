// Compiled models on disk, so that a model compiled before is ready as soon as its files are hashed. Two kinds of files in one folder:
//     KEY.recipe   by the model file's bytes and all that decides the result (options, target, build of the compiler): which other
//                  files the model reads, which inputs' values are compiled in, and the warnings
//     KEY.loc      by a recipe's key and the contents of what it lists: the executable, mapped by who finds it
// Files appear whole (written aside, renamed) and are never changed, so any number of processes may share the folder. What is damaged is
// removed and made again. The folder stays below a limit: what was used least recently goes. See docs/decisions/cache.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "driver/options.h"
#include "runtime/executable.h"
#include "support/status.h"

namespace locution::driver {

/// What a compilation depended on besides the model file and the options.
struct CacheInputs {
  std::vector<std::string> files;   ///< external data, relative to the model's folder
  std::vector<std::string> values;  ///< inputs whose values are compiled in
};

/// One compilation's view of the cache.
class ModelCache {
 public:
  struct Entry {
    std::shared_ptr<const runtime::Executable> executable;
    std::vector<std::string> warnings;
  };

  /// Makes the folder when it is missing (for its owner alone) and hashes the model file. `target` is what the options resolve to; both
  /// must outlive the cache. Errors: the folder can't be made or written.
  static Result<ModelCache> open(const std::string& model, const CompileOptions& options, const TargetSpec& target);

  /// The model's compiled form, if it is there and sound.
  std::optional<Entry> find() const;

  /// Stores what the model was compiled to, unless one of its files was changed since `open`, the result is larger than the limit, or it has
  /// parts that are compiled on first use. Errors: the folder can't be written (the compilation is good all the same).
  Status store(const CacheInputs& inputs, const Entry& entry) const;

 private:
  ModelCache(std::string model, const CompileOptions& options, const TargetSpec& target);
  std::string fingerprint() const;
  std::optional<std::string> keyOf(const CacheInputs& inputs) const;
  bool isUnchanged(const CacheInputs& inputs) const;
  Status evict() const;

  std::string model_;
  const CompileOptions& options_;
  const TargetSpec& target_;
  std::string folder_;
  int64_t openedNs_;         ///< of the clock that files' times are of
  std::string fingerprint_;  ///< empty: the model can't be read
};

}  // namespace locution::driver

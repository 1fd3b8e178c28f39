// What can be asked of a compilation. Part of every cache key, as far as it changes the result.
#pragma once

#include <iosfwd>
#include <map>
#include <set>
#include <string>

#include "core/shape.h"
#include "core/target.h"
#include "core/tensor.h"

namespace locution::driver {

struct CompileOptions {
  std::string triple;                  ///< empty: the host's
  std::string cpu = "native";          ///< LLVM's name
  std::string machineFile;             ///< a profile written by `locution machine`; empty: built-in values
  int threads = 1;                     ///< what is compiled for
  int jobs = 0;                        ///< compile threads; 0: all cores. Never changes the result
  std::string scheduler = "analytic";  ///< "evolutionary:200": a search and its trials (scheduling.h)
  std::string records;                 ///< a file or postgresql://..., where the scheduler needs one; else empty
  uint64_t seed = 0;                   ///< of searches
  std::string scheduleFile;            ///< of sentences (generator/sentences.h); empty: none
  std::string tlmWeights;              ///< a file for the scheduler `tlm`; empty: those that were built in
  std::string adapter;                 ///< of them: a file, or "off"; empty: the one beside `machineFile`, if any
  bool strict = false;                 ///< TargetSpec::strict
  /// Nothing is contracted to multiply-adds. With the scheduler `ordered`, equal inputs give equal bits on every instruction set.
  bool sameBits = false;
  std::map<std::string, Shape> inputShapes;   ///< specialises dynamic inputs
  std::map<std::string, Tensor> inputValues;  ///< for inputs whose values decide shapes
  /// Dims and values that stay open are no error: code is made when a run brings them, in this process only.
  bool anyShape = false;
  int64_t foldCapBytes = int64_t{64} << 20;
  std::set<std::string, std::less<>> disabledPasses;
  std::set<std::string, std::less<>> dumpAfter;
  std::ostream* dump = nullptr;
  std::string cacheFolder;  ///< of compiled models (cache.h); empty: none
  int64_t cacheLimitBytes = int64_t{8} << 30;
};

}  // namespace locution::driver

// One case of the ONNX node suite: a folder with model.onnx and test_data_set_*/{input,output}_K.pb.
#pragma once

#include <string>
#include <vector>

#include "driver/options.h"

namespace locution::conformance {

enum class Outcome : char {
  Compiled = 'c',  ///< right, by kernels, copies and checks alone
  Folded = 'f',    ///< right, and known at compile time: nothing is left to run but copies of constants
  Host = 'h',      ///< right, and a host operator ran
  Refused = 'r',   ///< a message when importing or compiling
  Wrong = 'w',     ///< ran, and a result is off or its run failed
  Crashed = 'x',
  Hung = 't',
};
bool passed(Outcome outcome);

struct CaseResult {
  Outcome outcome = Outcome::Crashed;
  std::string message;
};

struct CaseOptions {
  driver::CompileOptions compile;
  std::string emulator;             ///< a command that runs a compiled model of the target; empty: in this process
  bool compileOnly = false;         ///< nothing runs: of a CPU that isn't here
  bool constants = false;           ///< inputs become constants: what is tested is folding
  bool dynamic = false;             ///< every dim of every input becomes a symbol, bound when the values come
  double rtol = 1e-3, atol = 1e-7;  ///< the suite's own
};

/// Names of all cases, sorted.
std::vector<std::string> caseNames(const std::string& suite);
/// What the case is about: the op type of the first node that isn't a Constant, in the file; of the case that a name ending in
/// "_expanded..." was made from. Reads the file by itself, so that it works where importing doesn't.
std::string caseOperator(const std::string& suite, const std::string& name);
CaseResult runCase(const std::string& folder, const CaseOptions& options);

}  // namespace locution::conformance

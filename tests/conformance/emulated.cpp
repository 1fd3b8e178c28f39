#include "emulated.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/values.h"

namespace locution::conformance {
namespace {

namespace fs = std::filesystem;

constexpr int kSeconds = 100;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "locution-case-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  bool isMade() const { return !path_.empty(); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string endOf(const std::string& path) {
  constexpr size_t kTail = 600;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  return all.size() > kTail ? all.substr(all.size() - kTail) : all;
}

}  // namespace

bool needsCompilerToRun(const std::string& message) {
  return message.find("a compiled file can't hold what is compiled on first use") != std::string::npos;
}

Result<Emulated> runEmulated(const std::string& command, const runtime::Executable& executable,
                             const std::vector<hostops::HostValue>& inputs, int threads) {
  TemporaryFolder folder;
  if (!folder.isMade()) return Status::error("no temporary folder can be made");
  const std::string model = folder.file("net.loc"), in = folder.file("in"), out = folder.file("out"),
                    log = folder.file("log");
  LOCUTION_RETURN_IF_ERROR(runtime::writeExecutable(executable, model));
  LOCUTION_RETURN_IF_ERROR(runtime::writeValues(in, inputs));
  const std::string line = "timeout " + std::to_string(kSeconds) + " " + command + " " + model + " --threads " +
                           std::to_string(threads) + " --input-values " + in + " --output-values " + out + " >" + log +
                           " 2>&1";
  const int status = std::system(line.c_str());
  Emulated result;
  if (status != 0) {
    // A shell says 128 + the signal of what it ran.
    result.crashed = !WIFEXITED(status) || WEXITSTATUS(status) > 128;
    result.failure = endOf(log);
    if (result.failure.empty()) result.failure = "status " + std::to_string(status);
    return result;
  }
  LOCUTION_ASSIGN_OR_RETURN(result.outputs, runtime::readValues(out));
  return result;
}

}  // namespace locution::conformance

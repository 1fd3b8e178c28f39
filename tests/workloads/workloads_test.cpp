// The kernels that the compiler makes of whole models and of every operator, as text and as workloads. LOCUTION_MODELS=FOLDER adds
// the models of a folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "driver/kernels.h"
#include "driver/prepare.h"
#include "loop/computation_text.h"
#include "loop/passes.h"
#include "loop/text.h"
#include "space/workload.h"

namespace locution {
namespace {

namespace fs = std::filesystem;

/// Files that hold a model, in one order.
std::vector<fs::path> modelsUnder(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".onnx") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}
fs::path dataFolder() { return fs::path(LOCUTION_ONNX_WHEEL) / "onnx/backend/test/data"; }

/// No kernels where the model can't be compiled without being told more.
std::vector<loop::Computation> kernelsOf(driver::Session& session, const fs::path& model) {
  std::vector<loop::Computation> out;
  auto graph = session.load(model.string());
  if (!graph.isOk() || !session.optimise(*graph).isOk()) return out;
  auto lowered = session.lower(*graph);
  if (!lowered.isOk()) return out;
  for (const driver::Step& step : lowered->steps)
    if (const auto* k = std::get_if<driver::KernelStep>(&step)) out.push_back(k->computation);
  return out;
}

/// Words of a workload's text that are no words of the language, nor what it calls things.
std::string namesIn(const std::string& text) {
  std::string out, word;
  auto isCounted = [](const std::string& w) {
    return std::string("irbv").find(w[0]) != std::string::npos && w.size() > 1 &&
           std::all_of(w.begin() + 1, w.end(), [](unsigned char c) { return std::isdigit(c); });
  };
  for (char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty() && !std::isdigit(static_cast<unsigned char>(word[0])) && !loop::isReservedWord(word) &&
        !isCounted(word) && word != "acc" && word != "kernel" && !parseDType(word.substr(0, word.rfind('x'))))
      out += word + " ";
    word.clear();
  }
  return out;
}

/// What must hold for one kernel, and between it and those seen before.
class Checker {
 public:
  void check(const loop::Computation& kernel) {
    const std::string text = loop::print(kernel);
    ++kernels;
    raw += kernel.raw != nullptr;
    ASSERT_TRUE(loop::verify(kernel).isOk()) << loop::verify(kernel).message() << "\n" << text;
    auto read = loop::parseComputation(text);
    ASSERT_TRUE(read.isOk()) << read.status().message() << "\n" << text;
    EXPECT_EQ(loop::print(*read), text);
    EXPECT_EQ(loop::hash(*read), loop::hash(kernel)) << text;
    EXPECT_EQ(driver::kernelKey(*read), driver::kernelKey(kernel)) << text;

    space::Workload w = space::canonical(kernel);
    auto again = space::parseWorkload(w.text);
    ASSERT_TRUE(again.isOk()) << again.status().message() << "\n" << w.text;
    EXPECT_EQ(again->text, w.text);
    EXPECT_EQ(again->hash, w.hash);
    EXPECT_EQ(space::canonical(w.kernel).text, w.text);
    EXPECT_EQ(space::canonical(*read).text, w.text);
    EXPECT_EQ(loop::print(w.kernel), w.text);
    EXPECT_EQ(namesIn(w.text), "") << w.text;

    auto [key, newKey] = hashOf.emplace(driver::kernelKey(kernel), w.hash);
    EXPECT_EQ(key->second, w.hash) << "kernels of one key are two workloads:\n" << w.text;
    auto [kept, newHash] = textOf.emplace(w.hash, w.text);
    EXPECT_EQ(kept->second, w.text) << "two workloads of one hash";
  }
  /// The scheduler writes the same plan for the workload's kernel.
  void checkPlan(const loop::Computation& kernel, const driver::Session& session) {
    space::Workload w = space::canonical(kernel);
    if (kernel.raw || !planned.insert(w.hash).second) return;
    auto a = driver::scheduleKernel(kernel, session.scheduler(), session.target());
    auto b = driver::scheduleKernel(w.kernel, session.scheduler(), session.target());
    ASSERT_TRUE(a.isOk() && b.isOk());
    EXPECT_EQ(a->sentence, b->sentence) << w.text;
    // The same loops too, where parameters are not in another order.
    if (loop::printNameFree(kernel) == w.text) {
      EXPECT_EQ(loop::hash(a->function), loop::hash(b->function)) << w.text;
    }
  }

  int kernels = 0, raw = 0;
  std::map<uint64_t, uint64_t> hashOf;
  std::map<uint64_t, std::string> textOf;
  std::set<uint64_t> planned;
};

std::shared_ptr<driver::Session> session() {
  driver::CompileOptions options;
  options.cpu = "x86-64-v3";
  options.jobs = 1;
  options.foldCapBytes = 1 << 20;
  return *driver::Session::create(options);
}

TEST(Workloads, OfWholeModels) {
  Checker checker;
  std::vector<fs::path> models = modelsUnder(dataFolder() / "light");
  if (const char* folder = std::getenv("LOCUTION_MODELS"))
    for (const fs::path& p : modelsUnder(folder)) models.push_back(p);
  for (const fs::path& model : models) {
    SCOPED_TRACE(model.filename());
    auto s = session();
    std::vector<loop::Computation> kernels = kernelsOf(*s, model);
    for (const loop::Computation& k : kernels) {
      checker.check(k);
      checker.checkPlan(k, *s);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(checker.kernels, 500);
  // Networks repeat themselves, and each other.
  EXPECT_LT(checker.textOf.size(), static_cast<size_t>(checker.kernels));
  std::cout << checker.kernels << " kernels, " << checker.hashOf.size() << " keys, " << checker.textOf.size()
            << " workloads\n";
}

TEST(Workloads, OfEveryOperator) {
  Checker checker;
  auto s = session();
  for (const fs::path& model : modelsUnder(dataFolder() / "node")) {
    SCOPED_TRACE(model.parent_path().filename());
    for (const loop::Computation& k : kernelsOf(*s, model)) checker.check(k);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(checker.kernels, 1000);
  EXPECT_GE(checker.raw, 20);
  std::cout << checker.kernels << " kernels, " << checker.raw << " raw, " << checker.textOf.size() << " workloads\n";
}

}  // namespace
}  // namespace locution

// Bytes of real models, mutated, into the importer, all passes and the lowering to kernels, without a run: whatever they hold, there
// are kernels or a message, in bounded time. The models are the node suite's of the unpacked onnx wheel: small, every operator.
//   fuzz_models [--seconds N] [--seed S] [--count N] [--only S] [--print]
// --only takes one case in this process; --print writes its bytes to fuzz_models-S.onnx.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "driver/prepare.h"
#include "frontend/onnx/onnx_importer.h"
#include "fuzz_main.h"
#include "graph/graph.h"

namespace locution::fuzz {

namespace {

using Bytes = std::string;

// In order of their names.
const std::vector<std::filesystem::path>& models() {
  static const std::vector<std::filesystem::path> kAll = [] {
    std::vector<std::filesystem::path> out;
    std::error_code error;
    const std::filesystem::path suite = LOCUTION_ONNX_WHEEL "/onnx/backend/test/data/node";
    for (const auto& entry : std::filesystem::directory_iterator(suite, error)) {
      std::filesystem::path file = entry.path() / "model.onnx";
      if (std::filesystem::exists(file, error)) out.push_back(file);
    }
    std::sort(out.begin(), out.end());
    return out;
  }();
  return kAll;
}

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  Bytes run() {
    Bytes bytes = read(anyModel());
    // Few at a time: most of the file must stay what it was to get past the parser.
    for (size_t n = 1 + pick(3); n-- > 0 && !bytes.empty();) mutate(bytes);
    return bytes;
  }

 private:
  size_t pick(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }
  const std::filesystem::path& anyModel() { return models()[pick(models().size())]; }

  void mutate(Bytes& b) {
    size_t at = pick(b.size()), length = 1 + pick(std::min<size_t>(16, b.size() - at));
    switch (pick(8)) {
      case 0:
        b[at] = static_cast<char>(b[at] ^ (1 << pick(8)));
        return;
      case 1:
        b[at] = static_cast<char>(random_());
        return;
      case 2: {  // numbers that are special somewhere
        static constexpr unsigned char kBytes[] = {0, 1, 2, 3, 7, 8, 16, 0x7f, 0x80, 0xff};
        b[at] = static_cast<char>(kBytes[pick(std::size(kBytes))]);
        return;
      }
      case 3: {  // lengths stay as they are, or the parser would turn nearly everything down; now and then they don't
        if (pick(8) == 0) {
          b.erase(at, length);
          return;
        }
        b.replace(at, length, b.substr(pick(b.size() - length + 1), length));
        return;
      }
      case 4: {  // two fields change places
        size_t other = pick(b.size() - length + 1);
        for (size_t i = 0; i < length; ++i) std::swap(b[at + i], b[other + i]);
        return;
      }
      case 5: {  // a field's value: tag, then a varint of nine or ten bytes: huge or negative
        static constexpr const char* kHuge[] = {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff\xff\x07",
                                                "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x80\x80\x80\x80\x08"};
        std::string huge = kHuge[pick(std::size(kHuge))];
        b.replace(at, 1, huge);
        growParents(b, at, huge.size() - 1);
        return;
      }
      case 6: {  // a piece of another model
        Bytes other = read(anyModel());
        length = std::min(length, other.size());
        b.replace(at, length, other.substr(pick(other.size() - length + 1), length));
        return;
      }
      default:  // letters: names of operators, attributes and values
        if (std::isalpha(static_cast<unsigned char>(b[at])))
          b[at] = static_cast<char>('a' + pick(26));
        else
          b[at] = static_cast<char>(b[at] + (pick(2) == 0 ? 1 : -1));
        return;
    }
  }

  // Lengths of the messages around `at`, as far as a walk from the start finds them, so that the insertion parses.
  static void growParents(Bytes& b, size_t at, size_t by) {
    size_t begin = 0, end = b.size() - by;
    for (int depth = 0; depth < 8; ++depth) {
      bool entered = false;
      for (size_t p = begin; p < end && p < at;) {
        unsigned wire = static_cast<unsigned char>(b[p]) & 7;
        ++p;
        size_t lengthAt = p;
        uint64_t value = 0;
        for (int shift = 0; p < b.size() && shift < 63; shift += 7) {
          unsigned char c = static_cast<unsigned char>(b[p++]);
          value |= uint64_t{c & 0x7fU} << shift;
          if (c < 0x80) break;
        }
        if (wire != 2) {
          if (wire != 0) return;
          continue;
        }
        if (value > b.size()) return;
        if (at < p || at >= p + value) {
          p += value;
          continue;
        }
        // One-byte lengths stay one byte, or the walk's places would move.
        if (p - lengthAt != 1 || value + by > 0x7f) {
          if (p - lengthAt != 2 || value + by > 0x3fff) return;
          b[lengthAt] = static_cast<char>(((value + by) & 0x7f) | 0x80);
          b[lengthAt + 1] = static_cast<char>((value + by) >> 7);
        } else {
          b[lengthAt] = static_cast<char>(value + by);
        }
        begin = p;
        end = p + value + by;
        entered = true;
        break;
      }
      if (!entered) return;
    }
  }

  std::mt19937_64 random_;
};

std::string lowerBytes(std::span<const std::byte> bytes, Coverage* coverage) {
  frontend::ImportOptions import;
  import.maxDenseBytes = 1 << 24;
  import.maxInlinedNodes = 10'000;
  auto model = frontend::importModel(bytes, "fuzz.onnx", "", import);
  if (!model.isOk()) return model.status().message().empty() ? "an error without a message" : "refused";
  if (coverage) ++coverage->marks["imported"];
  Status broken = graph::verify(model->graph);
  if (!broken.isOk()) return "the imported graph is broken: " + broken.message();
  if (coverage) model->graph.forEachNode([&](graph::NodeId n) { ++coverage->ops[model->graph.node(n).op]; });
  driver::CompileOptions options;
  options.jobs = 1;
  options.foldCapBytes = 1 << 24;
  auto session = driver::Session::create(options);
  if (!session.isOk()) return session.status().message();
  for (Status s : {(*session)->specialise(model->graph), (*session)->optimise(model->graph)})
    if (!s.isOk()) return "refused";
  auto lowered = (*session)->lower(model->graph);
  return lowered.isOk() ? "" : "refused";
}

std::string runBytes(const Bytes& bytes, Coverage* coverage) {
  return lowerBytes(std::as_bytes(std::span(bytes.data(), bytes.size())), coverage);
}

}  // namespace

int fuzzModelsMain(int argc, char** argv) {
  Flags flags;
  if (!parseFlags(argc, argv, "fuzz_models", &flags)) return 2;
  if (models().empty()) {
    std::printf("no models in " LOCUTION_ONNX_WHEEL "\n0 passed, 1 failed\n");
    return 1;
  }
  if (flags.only) {
    Bytes bytes = Mutator(*flags.only).run();
    if (flags.print) std::ofstream("fuzz_models-" + std::to_string(*flags.only) + ".onnx", std::ios::binary) << bytes;
    std::string problem = runBytes(bytes, nullptr);
    std::printf("%s\n", problem.empty() ? "lowered" : problem.c_str());
    return !problem.empty() && !problem.starts_with("refused");
  }
  Coverage coverage;
  int failed = runBatches(
      flags, "fuzz_models", [](uint64_t seed, Coverage& c) { return runBytes(Mutator(seed).run(), &c); }, coverage);
  std::printf("%lld mutants of %zu models, %lld imported, %lld lowered, with %zu operators\n",
              static_cast<long long>(coverage.cases), models().size(),
              static_cast<long long>(coverage.marks["imported"]),
              static_cast<long long>(coverage.cases - coverage.refused - failed), coverage.ops.size());
  std::printf("%lld passed, %d failed\n", static_cast<long long>(coverage.cases - failed), failed);
  return failed > 0;
}

int fuzzModelBytes(const uint8_t* data, size_t size) {
  std::string problem = lowerBytes(std::as_bytes(std::span(data, size)), nullptr);
  LOCUTION_CHECK(problem.empty() || problem == "refused") << problem;
  return 0;
}

}  // namespace locution::fuzz

#ifdef LOCUTION_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return locution::fuzz::fuzzModelBytes(data, size);
}
#else
int main(int argc, char** argv) { return locution::fuzz::fuzzModelsMain(argc, argv); }
#endif

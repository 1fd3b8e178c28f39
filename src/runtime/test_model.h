// For tests: a small model with a bit of everything that an executable can hold, around one hand-made kernel (out = in + in).
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "hostops/attrs.h"
#include "runtime/cpu_features.h"
#include "runtime/executable.h"

namespace locution::runtime {

/// int kernel(args, begin, end) { for (; begin < end; ++begin) out[begin] = in[begin] + in[begin]; return 0; } on floats.
inline std::vector<std::byte> doublingKernel() {
#if defined(__x86_64__)
  constexpr unsigned char kCode[] = {0x48, 0x8b, 0x07, 0x48, 0x8b, 0x08, 0x48, 0x8b, 0x40, 0x08, 0x48, 0x39, 0xd6,
                                     0x7d, 0x13, 0xf3, 0x0f, 0x10, 0x04, 0xb1, 0xf3, 0x0f, 0x58, 0xc0, 0xf3, 0x0f,
                                     0x11, 0x04, 0xb0, 0x48, 0xff, 0xc6, 0xeb, 0xe8, 0x31, 0xc0, 0xc3};
#elif defined(__aarch64__)
  constexpr unsigned char kCode[] = {0x00, 0x00, 0x40, 0xf9, 0x03, 0x00, 0x40, 0xa9, 0x3f, 0x00, 0x02,
                                     0xeb, 0x6b, 0x00, 0x00, 0x54, 0x00, 0x00, 0x80, 0x52, 0xc0, 0x03,
                                     0x5f, 0xd6, 0x60, 0x78, 0x61, 0xbc, 0x00, 0x28, 0x20, 0x1e, 0x00,
                                     0x78, 0x21, 0xbc, 0x21, 0x04, 0x00, 0x91, 0xf8, 0xff, 0xff, 0x17};
#endif
  std::vector<std::byte> out;
  for (unsigned char c : kCode) out.push_back(static_cast<std::byte>(c));
  return out;
}

constexpr int64_t kTestElements = 1000;

/// Inputs: x float32[1000]. Outputs: y = 4 x, weights (a constant), where (NonZero of x), words (a string constant).
inline std::shared_ptr<Executable> testModel() {
  auto e = std::make_shared<Executable>();
  e->modelName = "tiny";
  e->compilerVersion = "0.1";
  e->metadata = {{"author", "nobody"}, {"licence", "none"}};
  e->target.triple = std::string(hostArchitecture()) + "-unknown-linux-gnu";
  e->target.features = hostArchitecture() == "x86_64" ? "+sse3" : "+neon";
  e->code = doublingKernel();
  e->kernels = {{"double.0",
                 "Add",
                 "split i 8",
                 0,
                 static_cast<int64_t>(e->code.size()),
                 kTestElements,
                 1e6,
                 8e3,
                 {"Add", "Relu"}}};
  Tensor weights(DType::F32, {kTestElements});
  for (int64_t i = 0; i < kTestElements; ++i) weights.data<float>()[i] = static_cast<float>(i) * 0.5F;
  e->constants = {weights, Tensor::ofStrings({2}, {"cat", "dog"})};
  const std::vector<int64_t> dims = {kTestElements};
  e->slots = {
      {DType::F32, dims, SlotSpace::Input, 0, 0, "x"},         {DType::F32, dims, SlotSpace::Arena, 0, 64, "a"},
      {DType::F32, dims, SlotSpace::Constant, 0, 0, "w"},      {DType::F32, dims, SlotSpace::Output, 0, 0, "y"},
      {DType::F32, dims, SlotSpace::Output, 1, 0, "weights"},  {DType::I64, {1, -1}, SlotSpace::Dynamic, 0, 0, "where"},
      {DType::String, {2}, SlotSpace::Constant, 1, 0, "words"}};
  e->inputs = {{"x", DType::F32, dims, SlotId{0}, ValueKind::Tensor}};
  e->outputs = {{"y", DType::F32, dims, SlotId{3}, ValueKind::Tensor},
                {"weights", DType::F32, dims, SlotId{4}, ValueKind::Tensor},
                {"where", DType::I64, {1, -1}, SlotId{5}, ValueKind::Tensor},
                {"words", DType::String, {2}, SlotId{6}, ValueKind::Tensor}};
  e->instructions = {
      RunKernel{0, {SlotId{0}, SlotId{1}}}, RunKernel{0, {SlotId{1}, SlotId{3}}},
      RunHostOp{"NonZero", "node 2 'nz' (NonZero)", hostops::serialiseAttrs({}), {SlotId{0}}, {SlotId{5}}},
      CheckRange{SlotId{5}, 0, 900, "node 3 'take' (Gather)"}, CopySlot{SlotId{2}, SlotId{4}}};
  e->arenaBytes = 64 + 4 * kTestElements;
  e->flops = 2e6;
  return e;
}

/// A folder of its own, removed at the end.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "locution-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string readFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void writeFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace locution::runtime

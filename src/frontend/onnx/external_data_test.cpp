#include "frontend/onnx/external_data.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontend/onnx/test_models.h"

namespace locution::frontend {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::TestModel;

void addEntry(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
  auto& entry = *tensor.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

/// A model y = x * w, with w of float32[count] in `location`.
void writeModel(const TemporaryFolder& folder, const std::string& location, const std::string& offset,
                const std::string& length, int64_t count = 4) {
  TestModel model(17);
  onnx::TensorProto& w = *model.graph().add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(count);
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  addEntry(w, "location", location);
  if (!offset.empty()) addEntry(w, "offset", offset);
  if (!length.empty()) addEntry(w, "length", length);
  addEntry(w, "checksum", "ignored");
  model.node("Mul", {"x", "w"}, {"y"});
  model.output("y");
  folder.write("m.onnx", model.bytes());
}

Result<ImportedModel> import(const TemporaryFolder& folder) {
  ImportOptions options;
  options.requireKnownOps = false;
  return importModel(folder.file("m.onnx"), options);
}
std::string errorOf(const TemporaryFolder& folder) {
  auto model = import(folder);
  return model ? "no error" : model.status().message();
}
std::string floats(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    auto v = static_cast<float>(i);
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  return out;
}

TEST(ExternalData, IsReadFromItsRange) {
  TemporaryFolder folder;
  folder.write("w.bin", floats(100));
  for (const auto& [offset, length, first] :
       {std::tuple("", "", 0.f), std::tuple("16", "16", 4.f), std::tuple("384", "", 96.f)}) {
    writeModel(folder, "w.bin", offset, length);
    auto model = import(folder);
    ASSERT_TRUE(model.isOk()) << model.status().message();
    const Tensor* w = model->graph.constant(model->graph.findValue("w"));
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w->data<float>()[0], first);
  }
}

TEST(ExternalData, LargeIsMappedAndUnalignedIsCopied) {
  TemporaryFolder folder;
  folder.write("w.bin", std::string(2, 'x') + floats(50000));
  writeModel(folder, "w.bin", "2", "", 50000);
  auto model = import(folder);
  ASSERT_TRUE(model.isOk()) << model.status().message();
  const Tensor* w = model->graph.constant(model->graph.findValue("w"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w->raw()) % 4, 0u);
  EXPECT_EQ(w->data<float>()[49999], 49999.f);

  ExternalRange range{"w.bin", 4096, 100000};
  auto storage = openExternal(folder.path(), range, 8);
  ASSERT_TRUE(storage.isOk());
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*storage)->data()) % 4096, 0u);
}

TEST(ExternalData, InASubfolderOrBehindALinkThatStaysInside) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("data"));
  folder.write("data/w.bin", floats(4));
  std::filesystem::create_symlink("data/w.bin", folder.file("link.bin"));
  for (const char* location : {"data/w.bin", "./data/w.bin", "link.bin"}) {
    writeModel(folder, location, "0", "16");
    EXPECT_EQ(errorOf(folder), "no error") << location;
  }
}

TEST(ExternalData, MayNotLeaveTheFolder) {
  TemporaryFolder outside, folder;
  outside.write("w.bin", floats(4));
  std::filesystem::create_symlink(outside.file("w.bin"), folder.file("link.bin"));
  std::filesystem::create_symlink(outside.path(), folder.file("folder"));
  // A folder whose name begins like the model's is another folder.
  std::filesystem::create_directory(folder.path() + "-2");
  std::ofstream(folder.path() + "-2/w.bin") << floats(4);
  std::filesystem::create_symlink(folder.path() + "-2/w.bin", folder.file("sibling.bin"));
  std::string up = "../" + std::filesystem::path(outside.path()).filename().string() + "/w.bin";
  for (const auto& [location, reason] :
       {std::pair(outside.file("w.bin"), "must be relative"), std::pair(up, "may not leave"),
        std::pair(std::string("a/../../w.bin"), "may not leave"), std::pair(std::string("link.bin"), "symbolic link"),
        std::pair(std::string("folder/w.bin"), "symbolic link"), std::pair(std::string("sibling.bin"), "symbolic link"),
        std::pair(std::string(""), "no location")}) {
    writeModel(folder, location, "0", "16");
    EXPECT_THAT(errorOf(folder), AllOf(HasSubstr("m.onnx: initializer: tensor 'w': external data"), HasSubstr(reason)))
        << location;
  }
  std::filesystem::remove_all(folder.path() + "-2");
}

TEST(ExternalData, MissingAndTruncatedFiles) {
  TemporaryFolder folder;
  writeModel(folder, "w.bin", "8", "16");
  EXPECT_EQ(errorOf(folder),
            folder.file("m.onnx") +
                ": initializer: tensor 'w': external data 'w.bin' (offset 8, length 16): there is no such file");
  folder.write("w.bin", floats(4));
  EXPECT_THAT(errorOf(folder),
              AllOf(HasSubstr("tensor 'w': external data 'w.bin' (offset 8, length 16): "), HasSubstr("past its end")));
  std::filesystem::remove(folder.file("w.bin"));
  std::filesystem::create_directory(folder.file("w.bin"));
  EXPECT_THAT(errorOf(folder), HasSubstr("isn't a regular file"));
  std::filesystem::remove(folder.file("w.bin"));
  ASSERT_EQ(mkfifo(folder.file("w.bin").c_str(), 0600), 0);
  EXPECT_THAT(errorOf(folder), HasSubstr("isn't a regular file"));
}

TEST(ExternalData, HostileNumbers) {
  TemporaryFolder folder;
  folder.write("w.bin", floats(4));
  for (const auto& [offset, length, reason] :
       {std::tuple("-4", "16", "offset '-4' isn't a size"), std::tuple("0", "15", "takes 16 bytes"),
        std::tuple("1e3", "", "isn't a size"), std::tuple("99999999999999999999", "", "isn't a size"),
        std::tuple("9223372036854775807", "16", "past its end"), std::tuple("4 ", "", "isn't a size")}) {
    writeModel(folder, "w.bin", offset, length);
    EXPECT_THAT(errorOf(folder), HasSubstr(reason)) << offset;
  }
  writeModel(folder, "w.bin", "0", "", int64_t{1} << 45);
  EXPECT_THAT(errorOf(folder), HasSubstr("past its end"));
}

TEST(ExternalData, NeedsAFolder) {
  TemporaryFolder folder;
  writeModel(folder, "w.bin", "0", "16");
  std::string bytes;
  {
    std::ifstream in(folder.file("m.onnx"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  auto model = importModel(std::as_bytes(std::span(bytes)), "memory", "", {});
  ASSERT_FALSE(model.isOk());
  EXPECT_THAT(model.status().message(), HasSubstr("a model in memory has no folder"));
}

}  // namespace
}  // namespace locution::frontend

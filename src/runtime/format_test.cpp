// The .loc file: what is written is read back, nothing damaged gets past the checksum, and nothing hostile past validation.
#include "runtime/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/context.h"
#include "runtime/test_model.h"

namespace locution::runtime {
namespace {

using testing::HasSubstr;

std::string fileOf(const Executable& e) {
  TestFolder folder;
  Status s = writeExecutable(e, folder / "m.loc");
  EXPECT_TRUE(s.isOk()) << s.message();
  return readFile(folder / "m.loc");
}

// Small enough to flip every byte: one constant, no padding to speak of.
std::shared_ptr<Executable> smallModel() {
  auto e = testModel();
  e->constants[0] = Tensor(DType::F32, {16});
  for (Slot& s : e->slots)
    if (s.dtype == DType::F32) s.dims = {16};
  for (std::vector<Port>* ports : {&e->inputs, &e->outputs})
    for (Port& p : *ports)
      if (p.dtype == DType::F32) p.dims = {16};
  e->kernels[0].parallelExtent = 16;
  return e;
}

Result<std::shared_ptr<const Program>> load(const std::string& file) {
  auto storage = allocateStorage(std::max<size_t>(file.size(), 1));
  std::memcpy(storage->data(), file.data(), file.size());
  // Exactly as long as the file, so that a sanitizer sees a read past the end.
  struct Exact final : Storage {
    std::shared_ptr<Storage> owner;
    size_t bytes;
    std::byte* data() override { return owner->data(); }
    size_t size() const override { return bytes; }
  };
  auto exact = std::make_shared<Exact>();
  exact->owner = storage;
  exact->bytes = file.size();
  return Program::loadBytes(exact, "m.loc");
}
std::string errorOf(const std::string& file) {
  auto program = load(file);
  return program.isOk() ? "" : program.status().message();
}

TEST(Format, RoundTrip) {
  auto written = testModel();
  TestFolder folder;
  ASSERT_TRUE(writeExecutable(*written, folder / "m.loc").isOk());
  auto program = Program::loadFile(folder / "m.loc");
  ASSERT_TRUE(program.isOk()) << program.status().message();
  const Executable& read = (*program)->executable();
  EXPECT_EQ(read.modelName, written->modelName);
  EXPECT_EQ(read.metadata, written->metadata);
  EXPECT_EQ(read.target, written->target);
  EXPECT_EQ(read.code, written->code);
  EXPECT_EQ(read.arenaBytes, written->arenaBytes);
  EXPECT_EQ(read.instructions.size(), written->instructions.size());
  EXPECT_EQ(read.kernels[0].sentence, "split i 8");
  EXPECT_EQ(read.kernels[0].ops, (std::vector<std::string>{"Add", "Relu"}));
  ASSERT_EQ(read.constants.size(), 2U);
  EXPECT_TRUE(read.constants[0].identical(written->constants[0]));
  EXPECT_EQ(read.constants[1].strings(), written->constants[1].strings());
  // Written again, the same bytes.
  ASSERT_TRUE(writeExecutable(read, folder / "again.loc").isOk());
  EXPECT_EQ(readFile(folder / "m.loc"), readFile(folder / "again.loc"));
}

TEST(Format, RunsFromTheFile) {
  auto program = load(fileOf(*testModel()));
  ASSERT_TRUE(program.isOk()) << program.status().message();
  Context context(*program, nullptr);
  Tensor x(DType::F32, {kTestElements});
  x.data<float>()[7] = 1.5F;
  ASSERT_TRUE(context.setInput(0, x).isOk());
  Status s = context.run();
  ASSERT_TRUE(s.isOk()) << s.message();
  EXPECT_EQ(context.output(0).data<float>()[7], 6.0F);
  EXPECT_EQ(context.output(2).toInts(), std::vector<int64_t>{7});
  EXPECT_EQ(context.output(3).strings()[1], "dog");
}

TEST(Format, EveryFlippedByteIsNoticed) {
  const std::string file = fileOf(*smallModel());
  ASSERT_EQ(errorOf(file), "");
  for (size_t i = 0; i < file.size(); ++i) {
    for (char mask : {'\x01', '\xff'}) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ mask);
      ASSERT_NE(errorOf(bad), "") << "byte " << i;
      ASSERT_EQ(errorOf(bad).find('\n'), std::string::npos);
    }
  }
}

TEST(Format, EveryTruncationIsNoticed) {
  const std::string file = fileOf(*smallModel());
  for (size_t size = 0; size < file.size(); ++size) ASSERT_NE(errorOf(file.substr(0, size)), "") << size;
  EXPECT_NE(errorOf(file + '\0'), "");
}

TEST(Format, Messages) {
  const std::string file = fileOf(*smallModel());
  EXPECT_EQ(errorOf("PK\x03\x04 something else entirely"), "m.loc is not a .loc file");
  EXPECT_EQ(errorOf(""), "m.loc is not a .loc file");
  std::string other = file;
  other[8] = 9;
  EXPECT_EQ(errorOf(other), "m.loc has .loc format version 9, and this Locution reads version " +
                                std::to_string(kFormatVersion) + ": compile the model again");
  EXPECT_THAT(errorOf(file.substr(0, 200)), HasSubstr("m.loc is damaged: it has 200 bytes and should have"));
  other = file;
  other[file.size() / 2] ^= 1;
  EXPECT_EQ(errorOf(other), "m.loc is damaged: its checksum does not match its contents");
  EXPECT_THAT(Program::loadFile("/nowhere/net.loc").status().message(), HasSubstr("/nowhere/net.loc"));
  TestFolder folder;
  writeFile(folder / "empty.loc", "");
  EXPECT_THAT(Program::loadFile(folder / "empty.loc").status().message(), HasSubstr("is not a .loc file"));
  EXPECT_FALSE(Program::loadFile(folder.path()).isOk());
}

TEST(Format, OtherMachines) {
  auto e = smallModel();
  e->target.triple = "riscv64-unknown-linux-gnu";
  EXPECT_THAT(errorOf(fileOf(*e)), HasSubstr("m.loc was compiled for riscv64, and this machine is "));
}

// With the checksum put right: whatever the bytes say, loading gives an error or a valid program, never a crash. What loads is
// not run, because code can't be told from damaged code.
TEST(Format, ResealedDamageIsValidated) {
  const std::string file = fileOf(*smallModel());
  std::mt19937 random(1);
  int loaded = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string bad = file;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n) {
      size_t at = 64 + random() % (bad.size() - 64);
      switch (random() % 4) {
        case 0:
          bad[at] = static_cast<char>(random());
          break;
        case 1:
          bad[at] = '\xff';
          break;
        case 2:
          for (size_t k = at; k < std::min(at + 8, bad.size()); ++k) bad[k] = '\x7f';
          break;
        default:
          bad.resize(std::max<size_t>(at, 65));
          break;
      }
    }
    resealForTest(bad);
    loaded += load(bad).isOk();
  }
  EXPECT_GT(loaded, 0);  // damage to names and padding is no damage to the program
}

TEST(Format, EveryByteResealed) {
  const std::string file = fileOf(*smallModel());
  for (size_t i = 64; i < file.size(); ++i) {
    for (char value : {'\x7f', '\xff'}) {
      std::string bad = file;
      bad[i] = value;
      resealForTest(bad);
      (void)load(bad).isOk();
    }
  }
}

TEST(Format, NothingHalfWritten) {
  TestFolder folder;
  EXPECT_THAT(writeExecutable(*testModel(), folder / "no/m.loc").message(), HasSubstr("cannot write"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  // Something that isn't a file is never replaced by one.
  std::filesystem::create_directory(folder / "dir");
  EXPECT_THAT(writeExecutable(*testModel(), folder / "dir").message(), HasSubstr("not a regular file"));
  EXPECT_THAT(writeExecutable(*testModel(), "/dev/null").message(), HasSubstr("not a regular file"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace locution::runtime

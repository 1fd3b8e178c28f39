// The cache of compiled models: what makes a hit, what makes a miss, and that nothing damaged is ever used.
#include "driver/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/compiler.h"
#include "runtime/context.h"

namespace locution::driver {
namespace {

namespace fs = std::filesystem;

class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "locution-cache-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    model_ = writeModel("model.txt", 6);
    options_.jobs = 1;
    options_.cpu = "x86-64-v2";
    options_.cacheFolder = (folder_ / "cache").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // y = x * factor over `rows` x 64. Old enough for the cache: a file of this moment could still be being written.
  std::string writeModel(const std::string& name, int factor, int rows = 4) {
    std::ofstream file(folder_ / name);
    std::string shape = "float32[" + std::to_string(rows) + "x64]", weights;
    for (int i = 0; i < rows * 64; ++i) weights += (i ? ", " : "") + std::to_string(factor);
    file << "graph \"scale\" {\n  input %x: " << shape << "\n  const %w: " << shape << " = [" << weights
         << "]\n  %y: " << shape << " = Mul(%x, %w)\n  output %y\n}\n";
    file.close();
    usleep(40'000);
    return (folder_ / name).string();
  }

  Compiled compile(const std::string& model, const CompileOptions& options) {
    auto out = compileModel(model, options);
    EXPECT_TRUE(out.isOk()) << out.status().message();
    return out.isOk() ? std::move(*out) : Compiled();
  }
  CacheUse use() { return compile(model_, options_).cache; }

  // The first output element for x = 1.
  static double result(const Compiled& compiled) {
    auto program = runtime::Program::load(compiled.executable);
    EXPECT_TRUE(program.isOk()) << program.status().message();
    runtime::Context context(*program, runtime::ThreadPool::create(1));
    Tensor x(DType::F32, compiled.executable->inputs[0].dims);
    for (int64_t i = 0; i < x.elements(); ++i) x.setElement(i, 1);
    EXPECT_TRUE(context.setInput(0, x).isOk());
    EXPECT_TRUE(context.run().isOk());
    return context.output(0).elementAsDouble(0);
  }

  std::vector<fs::path> entries(const std::string& extension) const {
    std::vector<fs::path> out;
    for (const auto& e : fs::directory_iterator(options_.cacheFolder))
      if (e.path().extension() == extension) out.push_back(e.path());
    return out;
  }
  int64_t cacheBytes() const {
    int64_t sum = 0;
    for (const auto& e : fs::directory_iterator(options_.cacheFolder)) sum += static_cast<int64_t>(e.file_size());
    return sum;
  }
  static std::string readFile(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
  static void writeFile(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  fs::path folder_;
  std::string model_;
  CompileOptions options_;
};

TEST_F(CacheTest, OffMissHit) {
  CompileOptions off = options_;
  off.cacheFolder.clear();
  EXPECT_EQ(compile(model_, off).cache, CacheUse::Off);
  Compiled miss = compile(model_, options_), hit = compile(model_, options_);
  EXPECT_EQ(miss.cache, CacheUse::Miss);
  EXPECT_EQ(hit.cache, CacheUse::Hit);
  EXPECT_EQ(hit.executable->code, miss.executable->code);
  EXPECT_EQ(hit.executable->target, miss.executable->target);
  EXPECT_EQ(result(miss), 6);
  EXPECT_EQ(result(hit), 6);
  // By contents, not by name.
  fs::copy_file(model_, folder_ / "copy.txt");
  EXPECT_EQ(compile((folder_ / "copy.txt").string(), options_).cache, CacheUse::Hit);
  // Only the owner may put code there.
  struct stat info {};
  ASSERT_EQ(stat(options_.cacheFolder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST_F(CacheTest, AChangedModelMisses) {
  EXPECT_EQ(use(), CacheUse::Miss);
  writeModel("model.txt", 3);
  Compiled changed = compile(model_, options_);
  EXPECT_EQ(changed.cache, CacheUse::Miss);
  EXPECT_EQ(result(changed), 3);
  writeModel("model.txt", 6);
  EXPECT_EQ(use(), CacheUse::Hit);
}

TEST_F(CacheTest, OptionsDontMix) {
  std::vector<CompileOptions> variants(6, options_);
  variants[1].threads = 2;
  variants[2].cpu = "x86-64-v3";
  variants[3].scheduler = "baseline";
  variants[4].strict = true;
  variants[5].disabledPasses = {"fuse"};
  for (const CompileOptions& o : variants) EXPECT_EQ(compile(model_, o).cache, CacheUse::Miss);
  for (const CompileOptions& o : variants) {
    Compiled hit = compile(model_, o);
    EXPECT_EQ(hit.cache, CacheUse::Hit);
    EXPECT_EQ(hit.executable->target, *resolveTarget(o));
  }
  // How many compile is no matter; a dump needs the passes to run.
  CompileOptions jobs = options_, dump = options_;
  jobs.jobs = 2;
  EXPECT_EQ(compile(model_, jobs).cache, CacheUse::Hit);
  std::ostringstream text;
  dump.dumpAfter = {"fuse"};
  dump.dump = &text;
  EXPECT_EQ(compile(model_, dump).cache, CacheUse::Off);
  EXPECT_FALSE(text.str().empty());
}

TEST_F(CacheTest, DamageIsIgnoredAndMended) {
  EXPECT_EQ(use(), CacheUse::Miss);
  for (const char* extension : {".loc", ".recipe"}) {
    ASSERT_EQ(entries(extension).size(), 1U);
    const fs::path path = entries(extension)[0];
    const std::string good = readFile(path);
    std::vector<std::string> bad = {"", good + "x"};
    for (size_t i = 0; i < 16; ++i) bad.push_back(good.substr(0, good.size() * i / 16));
    for (size_t i = 0; i < 64; ++i) {
      bad.push_back(good);
      bad.back()[good.size() * i / 64] ^= static_cast<char>(1 << i % 8);
    }
    for (const std::string& bytes : bad) {
      writeFile(path, bytes);
      Compiled again = compile(model_, options_);
      ASSERT_EQ(again.cache, CacheUse::Miss);
      EXPECT_TRUE(again.warnings.empty());
      ASSERT_EQ(result(again), 6);
      ASSERT_EQ(readFile(path), good);
    }
    EXPECT_EQ(use(), CacheUse::Hit);
  }
}

TEST_F(CacheTest, AnEntryUnderAnotherNameIsNotTaken) {
  EXPECT_EQ(use(), CacheUse::Miss);
  const fs::path first = entries(".loc")[0];
  const std::string bytes = readFile(first);
  fs::remove(first);
  CompileOptions wide = options_;
  wide.threads = 3;
  EXPECT_EQ(compile(model_, wide).cache, CacheUse::Miss);
  writeFile(entries(".loc")[0], bytes);  // sound, but for one thread
  EXPECT_EQ(compile(model_, wide).cache, CacheUse::Miss);
}

TEST_F(CacheTest, TheLeastRecentlyUsedGoes) {
  const std::string a = writeModel("a.txt", 5, 64), b = writeModel("b.txt", 2, 64), c = writeModel("c.txt", 3, 64);
  EXPECT_EQ(compile(a, options_).cache, CacheUse::Miss);
  const int64_t one = cacheBytes();
  options_.cacheLimitBytes = 5 * one / 2;
  EXPECT_EQ(compile(b, options_).cache, CacheUse::Miss);
  usleep(20'000);
  EXPECT_EQ(compile(a, options_).cache, CacheUse::Hit);  // now b is the oldest
  usleep(20'000);
  EXPECT_EQ(compile(c, options_).cache, CacheUse::Miss);
  EXPECT_LE(cacheBytes(), options_.cacheLimitBytes);
  EXPECT_EQ(compile(a, options_).cache, CacheUse::Hit);
  EXPECT_EQ(compile(c, options_).cache, CacheUse::Hit);
  EXPECT_EQ(compile(b, options_).cache, CacheUse::Miss);
  // Larger than all the room there is: not kept, and nothing goes for it.
  options_.cacheLimitBytes = 1000;
  const std::string d = writeModel("d.txt", 4, 64);
  EXPECT_EQ(compile(d, options_).cache, CacheUse::Miss);
  EXPECT_EQ(compile(d, options_).cache, CacheUse::Miss);
}

TEST_F(CacheTest, WhatDeadProcessesLeftGoes) {
  EXPECT_EQ(use(), CacheUse::Miss);
  const fs::path stale = fs::path(options_.cacheFolder) / "0123.loc.tmp1",
                 fresh = fs::path(options_.cacheFolder) / "4567.loc.tmp2";
  writeFile(stale, "half");
  writeFile(fresh, "half");
  fs::last_write_time(stale, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(compile(writeModel("other.txt", 7), options_).cache, CacheUse::Miss);
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(CacheTest, AFolderThatCantBeWrittenIsAnError) {
  CompileOptions options = options_;
  options.cacheFolder = model_;
  auto out = compileModel(model_, options);
  ASSERT_FALSE(out.isOk());
  EXPECT_EQ(out.status().message(), "--cache " + model_ + ": it is not a folder");
  options.cacheFolder = "/proc/cache";
  EXPECT_FALSE(compileModel(model_, options).isOk());
}

}  // namespace
}  // namespace locution::driver

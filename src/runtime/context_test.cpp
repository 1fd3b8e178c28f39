#include "runtime/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/test_model.h"

namespace locution::runtime {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Program> program(const std::shared_ptr<Executable>& e) {
  auto loaded = Program::load(e);
  EXPECT_TRUE(loaded.isOk()) << loaded.status().message();
  return loaded.isOk() ? *loaded : nullptr;
}
Tensor counting(int64_t n) {
  Tensor x(DType::F32, {n});
  for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(i);
  return x;
}

TEST(Context, RunsAndRunsAgain) {
  auto e = testModel();
  e->instructions.erase(e->instructions.begin() + 3);  // the range check
  for (int threads : {1, 2, 4}) {
    Context context(program(e), ThreadPool::create(threads));
    for (float first : {0.0F, 5.0F}) {
      Tensor x = counting(kTestElements);
      x.data<float>()[0] = first;
      ASSERT_TRUE(context.setInput(0, x).isOk());
      ASSERT_TRUE(context.run().isOk());
      EXPECT_EQ(context.output(0).data<float>()[0], 4 * first);
      EXPECT_EQ(context.output(0).data<float>()[999], 3996);
      EXPECT_EQ(context.output(1).data<float>()[3], 1.5F);
      EXPECT_EQ(context.output(2).dims(), (std::vector<int64_t>{1, first == 0 ? 999 : 1000}));
      EXPECT_EQ(context.output(3).strings()[0], "cat");
    }
  }
}

TEST(Context, MisalignedInputAndBoundOutput) {
  auto e = testModel();
  e->instructions.erase(e->instructions.begin() + 3);
  Context context(program(e), nullptr);
  auto bytes = allocateStorage(4 * kTestElements + 4);
  Tensor x(DType::F32, {kTestElements}, bytes, 4), y(DType::F32, {kTestElements});
  x.data<float>()[1] = 2;
  ASSERT_TRUE(context.setInput(0, x).isOk());
  ASSERT_TRUE(context.bindOutput(0, y).isOk());
  ASSERT_TRUE(context.run().isOk());
  EXPECT_EQ(y.data<float>()[1], 8);
  EXPECT_EQ(context.output(0).raw(), y.raw());
}

TEST(Context, Errors) {
  Context context(program(testModel()), nullptr);
  EXPECT_EQ(context.run().message(), "input \"x\" is not set");
  EXPECT_EQ(context.setInput(0, Tensor(DType::F64, {3})).message(),
            "input \"x\" must be float32[1000], but is float64[3]");
  EXPECT_EQ(context.setInput(1, Tensor(DType::F32, {3})).message(), "there is no input 1: the model has 1");
  EXPECT_EQ(context.bindOutput(0, Tensor(DType::F32, {3})).message(),
            "the memory for output \"y\" must be float32[1000], but is float32[3]");
  EXPECT_EQ(context.bindOutput(2, Tensor(DType::I64, {1, 3})).message(),
            "output \"where\" can't be bound: its memory is the model's");
  // Elements 901 on are non-zero: their positions are out of the checked range.
  ASSERT_TRUE(context.setInput(0, counting(kTestElements)).isOk());
  EXPECT_EQ(context.run().message(), "node 3 'take' (Gather): element 900 of \"where\" is 901, outside [0, 900]");
}

TEST(Context, ErrorsOfHostOperatorsNameTheNode) {
  auto e = testModel();
  e->instructions = {
      RunHostOp{"TopK", "node 5 'top' (TopK)", hostops::serialiseAttrs({}), {SlotId{0}, SlotId{0}}, {SlotId{5}}}};
  e->outputs.resize(1);
  e->slots[4].index = 0;
  Context context(program(e), nullptr);
  ASSERT_TRUE(context.setInput(0, counting(kTestElements)).isOk());
  EXPECT_EQ(context.run().message(), "node 5 'top' (TopK): K must be integers, but is float32");
}

// A value that a host operator hands on must not change when the arena is written again.
TEST(Context, HandedOnValuesAreKept) {
  auto e = testModel();
  const std::vector<int64_t> dims = {kTestElements};
  e->slots.push_back({DType::F32, dims, SlotSpace::Dynamic, 0, 0, "kept"});
  e->outputs[2] = {"kept", DType::F32, dims, SlotId{7}, ValueKind::Tensor};
  e->instructions = {RunKernel{0, {SlotId{0}, SlotId{1}}},
                     RunHostOp{"Identity", "node 1", hostops::serialiseAttrs({}), {SlotId{1}}, {SlotId{7}}},
                     RunKernel{0, {SlotId{1}, SlotId{1}}},  // the arena's slot, doubled in place
                     RunKernel{0, {SlotId{7}, SlotId{3}}},  // a kernel on the host operator's value
                     CopySlot{SlotId{2}, SlotId{4}}};
  Context context(program(e), nullptr);
  ASSERT_TRUE(context.setInput(0, counting(kTestElements)).isOk());
  ASSERT_TRUE(context.run().isOk());
  EXPECT_EQ(context.output(2).data<float>()[10], 20);
  EXPECT_EQ(context.output(0).data<float>()[10], 40);
}

TEST(Context, ProfileAndObserver) {
  auto e = testModel();
  e->instructions.erase(e->instructions.begin() + 3);
  Context context(program(e), nullptr);
  ASSERT_TRUE(context.setInput(0, counting(kTestElements)).isOk());
  context.setProfiling(true);
  std::vector<size_t> seen;
  Status s = context.runObserved([&](size_t i, const std::vector<Tensor>& buffers) {
    seen.push_back(i);
    if (i == 1) {
      EXPECT_EQ(buffers.size(), 2U);
      EXPECT_EQ(buffers[0].data<float>()[2], 4);
      EXPECT_EQ(buffers[1].data<float>()[2], 8);
    }
    return i == 2 ? Status::error("seen enough") : Status::ok();
  });
  EXPECT_EQ(s.message(), "seen enough");
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(context.profile()[0].runs, 1);
  EXPECT_EQ(context.profile()[3].runs, 0);
}

TEST(Context, SeveralAtOnceOnOnePool) {
  auto e = testModel();
  e->instructions.erase(e->instructions.begin() + 3);
  auto shared = program(e);
  auto pool = ThreadPool::create(2);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      Context context(shared, pool);
      Tensor x(DType::F32, {kTestElements});
      x.data<float>()[5] = static_cast<float>(c);
      ASSERT_TRUE(context.setInput(0, x).isOk());
      for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(context.run().isOk());
        ASSERT_EQ(context.output(0).data<float>()[5], static_cast<float>(4 * c));
      }
    });
  }
  for (std::thread& t : callers) t.join();
}

// Everything that load refuses: the one thing that is off, and a part of the message.
struct Broken {
  const char* message;
  void (*spoil)(Executable&);
};
TEST(Program, Validation) {
  const std::vector<Broken> cases = {
      {"an arena of -1 bytes", [](Executable& e) { e.arenaBytes = -1; }},
      {"slot 1 \"a\": outside the arena", [](Executable& e) { e.arenaBytes = 100; }},
      {"slot 1 \"a\": not aligned in the arena", [](Executable& e) { e.slots[1].offset = 4; }},
      {"slot 1 \"a\": a dim of -1", [](Executable& e) { e.slots[1].dims = {-1}; }},
      {"absurdly large",
       [](Executable& e) {
         e.slots[1].dims = {int64_t{1} << 40, int64_t{1} << 40};
       }},
      {"slot 2 \"w\": outside its constant", [](Executable& e) { e.slots[2].offset = 64; }},
      {"constant 9 does not exist", [](Executable& e) { e.slots[2].index = 9; }},
      {"differs from input \"x\"", [](Executable& e) { e.slots[0].dims = {3}; }},
      {"output 7 does not exist", [](Executable& e) { e.slots[3].index = 7; }},
      {"input \"x\" has another port's slot", [](Executable& e) { e.inputs[0].slot = SlotId{1}; }},
      {"output \"y\" has no slot", [](Executable& e) { e.outputs[0].slot = SlotId{70}; }},
      {"output \"y\" has another port's slot", [](Executable& e) { e.outputs[0].slot = SlotId{4}; }},
      {"the code of kernel \"double.0\" lies outside", [](Executable& e) { e.kernels[0].codeSize += 1; }},
      {"is not aligned", [](Executable& e) { e.kernels[0].codeOffset = 1, e.kernels[0].codeSize -= 1; }},
      {"kernel 3 does not exist", [](Executable& e) { std::get<RunKernel>(e.instructions[0]).kernel = 3; }},
      {"instruction 0: slot 90 does not exist",
       [](Executable& e) { std::get<RunKernel>(e.instructions[0]).buffers[0] = SlotId{90}; }},
      {"a kernel can't use slot \"words\"",
       [](Executable& e) { std::get<RunKernel>(e.instructions[0]).buffers[0] = SlotId{6}; }},
      {"slot \"where\" is read before it is written",
       [](Executable& e) { std::swap(e.instructions[2], e.instructions[3]); }},
      {"output \"where\" is never written", [](Executable& e) { e.instructions.resize(2); }},
      {"no host operator is called \"Zero\"",
       [](Executable& e) { std::get<RunHostOp>(e.instructions[2]).op = "Zero"; }},
      {"the attributes can't be read", [](Executable& e) { std::get<RunHostOp>(e.instructions[2]).attrs = "?"; }},
      {"slot \"w\" is written, but is constant",
       [](Executable& e) { std::get<RunHostOp>(e.instructions[2]).outputs[0] = SlotId{2}; }},
      {"a range check of what is no integer",
       [](Executable& e) { std::get<CheckRange>(e.instructions[3]).slot = SlotId{0}; }},
      {"a copy to another type", [](Executable& e) { std::get<CopySlot>(e.instructions[4]).from = SlotId{6}; }},
      {"was compiled for aarch65, and this machine is", [](Executable& e) { e.target.triple = "aarch65-linux"; }},
  };
  for (const Broken& broken : cases) {
    auto e = testModel();
    broken.spoil(*e);
    auto loaded = Program::load(e);
    ASSERT_FALSE(loaded.isOk()) << broken.message;
    EXPECT_THAT(loaded.status().message(), HasSubstr(broken.message));
    EXPECT_THAT(loaded.status().message(), HasSubstr("tiny"));
  }
}

#if defined(__x86_64__)
TEST(CpuFeatures, ThisMachine) {
  EXPECT_TRUE(missingFeatures("").empty());
  EXPECT_TRUE(missingFeatures("+sse3,-avx512f,+fast-gather,+64bit").empty());
  // What no one machine has: AMD's and Intel's own.
  std::vector<std::string> missing = missingFeatures("+sse3,+xop,+amx-complex,+sse4a,+avx10.2");
  EXPECT_FALSE(missing.empty());
  EXPECT_EQ(missingFeatures("+avx2").empty(), static_cast<bool>(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(missingFeatures("+avx512f,+avx512vnni").empty(),
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni"));
  auto e = testModel();
  e->target.cpu = "fantasy";
  e->target.features = "+xop,+amx-complex,+avx10.2";
  EXPECT_THAT(Program::load(e).status().message(), HasSubstr("tiny was compiled for fantasy (needs "));
  EXPECT_THAT(Program::load(e).status().message(), HasSubstr("), which this CPU lacks"));
}
#endif

}  // namespace
}  // namespace locution::runtime

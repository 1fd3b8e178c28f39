// The C++ layer over the C API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "locution/locution.hpp"
#include "runtime/test_model.h"

namespace locution::runtime {
namespace {

TEST(CxxApi, LoadsAndRuns) {
  TestFolder folder;
  auto e = testModel();
  e->instructions.erase(e->instructions.begin() + 3);  // the range check
  ASSERT_TRUE(writeExecutable(*e, folder / "m.loc").isOk());
  cxx::Model model(folder / "m.loc");
  cxx::ThreadPool pool(2);
  cxx::Context context(model, pool);
  cxx::Port port = model.input(0);
  EXPECT_EQ(port.name, "x");
  std::vector<float> x(port.elements());
  x[2] = 1.5F;
  auto outputs = context.run({cxx::view(x, port.dims)});
  EXPECT_EQ(outputs[0].data<float>()[2], 6.0F);
  EXPECT_EQ(outputs[2].dims(), (std::vector<int64_t>{1, 1}));
  EXPECT_THROW((void)outputs[0].data<int64_t>(), cxx::Error);
  EXPECT_THROW(cxx::view(x, {3}), cxx::Error);
  EXPECT_THROW(context.run({}), cxx::Error);
  try {
    cxx::Model missing("/nowhere/m.loc");
    FAIL();
  } catch (const cxx::Error& error) {
    EXPECT_EQ(error.status(), LOCUTION_CANNOT_LOAD);
    EXPECT_THAT(error.what(), testing::HasSubstr("/nowhere/m.loc"));
  }
}

}  // namespace
}  // namespace locution::runtime

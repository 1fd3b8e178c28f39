// How fast records are stored and read; ten samples and a sentence of some 200 characters each.
#include <benchmark/benchmark.h>

#include "records/test_stores.h"

namespace locution::records {
namespace {

using testing::opened;
using testing::PostgresPlace;
using testing::RecordMaker;
using testing::SqlitePlace;

std::vector<Record> some(const RecordMaker& make, int64_t from, int64_t count) {
  std::vector<Record> records;
  for (int64_t i = 0; i < count; ++i) {
    Record& r = records.emplace_back(make(static_cast<int>(from + i)));
    r.sentence =
        "cpu v64 r32 fma2 t2 l1:48k l2:2m | contraction f32 s56 s56 s64 r64 r3 r3 x:w3 w:const epi:bias,relu | direct "
        "pack=w mr=7 nr=4 ku=1 kc=all par=oc,oh grain=8 epi=reg n=" +
        std::to_string(from + i);
  }
  return records;
}

template <typename Place>
void addAll(benchmark::State& state) {
  Place place;
  auto store = opened(place.where());
  RecordMaker make(*store);
  int64_t made = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<Record> records = some(make, made, state.range(0));
    made += state.range(0);
    state.ResumeTiming();
    if (!store->addAll(records).isOk()) state.SkipWithError("not added");
  }
  state.SetItemsProcessed(made);
}
BENCHMARK_TEMPLATE(addAll, SqlitePlace)->Arg(1)->Arg(100)->Arg(1000)->UseRealTime();
BENCHMARK_TEMPLATE(addAll, PostgresPlace)->Arg(1)->Arg(100)->Arg(1000)->UseRealTime();

template <typename Place>
void readAll(benchmark::State& state) {
  Place place;
  auto store = opened(place.where());
  RecordMaker make(*store);
  if (!store->addAll(some(make, 0, state.range(0))).isOk()) state.SkipWithError("not added");
  for (auto _ : state)
    if (store->all({})->size() != static_cast<size_t>(state.range(0))) state.SkipWithError("not all");
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_TEMPLATE(readAll, SqlitePlace)->Arg(200000)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(readAll, PostgresPlace)->Arg(200000)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace locution::records

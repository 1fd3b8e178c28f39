// What only a server can be: away, refusing, in use for other things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/test_stores.h"

namespace locution::records {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::opened;
using testing::PostgresPlace;
using testing::RecordMaker;
using ::testing::StartsWith;
using testing::TestServer;

std::string refusal(const std::string& uri, Store::Open mode = Store::Open::Create) {
  auto store = Store::open(uri, mode);
  EXPECT_FALSE(store.isOk());
  return store.isOk() ? "" : store.status().message();
}

TEST(PostgresAwayTest, NoServerIsAMessageInOneLineWithoutThePassword) {
  std::string message = refusal("postgresql://user:geheim@127.0.0.1:1/records");
  EXPECT_THAT(message, StartsWith("postgresql://127.0.0.1:1/records: no connection: "));
  EXPECT_THAT(message, HasSubstr("Connection refused"));
  EXPECT_THAT(message, Not(HasSubstr("geheim")));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST(PostgresAwayTest, AMalformedUriIsAMessageWithoutThePassword) {
  for (const char* uri : {"postgresql://user:geheim@host/records?so=what", "postgresql://user:geheim@[::1/records",
                          "postgresql://user:geheim@host/%zz"}) {
    std::string message = refusal(uri);
    EXPECT_THAT(message, StartsWith("the PostgreSQL URI can't be read: "));
    EXPECT_THAT(message, Not(HasSubstr("geheim")));
  }
}

class PostgresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = PostgresPlace::missing(); !why.empty()) GTEST_SKIP() << why;
    place = std::make_unique<PostgresPlace>();
    size_t from = place->uri.rfind('/', place->uri.find('?')) + 1;
    database = place->uri.substr(from, place->uri.find('?') - from);
  }
  void execute(const std::string& sql) const { TestServer::shared().execute(database, sql); }
  std::unique_ptr<PostgresPlace> place;
  std::string database;
};

TEST_F(PostgresTest, AMissingDatabaseIsAMessage) {
  EXPECT_THAT(refusal(TestServer::shared().uri("nowhere")), HasSubstr("database \"nowhere\" does not exist"));
}

TEST_F(PostgresTest, ReadingMakesNothing) {
  EXPECT_THAT(refusal(place->uri, Store::Open::Read), HasSubstr("/" + database + ": holds no records yet"));
  execute("CREATE SCHEMA locution");  // would fail if it were there
}

TEST_F(PostgresTest, AForeignSchemaOfTheSameNameStaysAsItIs) {
  execute("CREATE SCHEMA locution; CREATE TABLE locution.meta (x INT)");
  EXPECT_THAT(refusal(place->uri), HasSubstr("its schema \"locution\" holds tables, but not those of records"));
}

TEST_F(PostgresTest, SharesADatabaseWithOthers) {
  execute("CREATE TABLE records (mine INT); INSERT INTO records VALUES (1)");
  auto store = opened(place->uri);
  EXPECT_TRUE(*store->add(RecordMaker(*store)(1)));
  execute("DO $$ BEGIN ASSERT (SELECT count(*) FROM public.records) = 1; END $$");
  execute("DO $$ BEGIN ASSERT (SELECT count(*) FROM locution.records) = 1; END $$");
}

TEST_F(PostgresTest, ANewerVersionIsNotTouched) {
  opened(place->uri);
  execute("UPDATE locution.meta SET value = 99");
  EXPECT_THAT(refusal(place->uri), HasSubstr("its tables have version 99, this program knows version 1"));
}

TEST_F(PostgresTest, OnlyUtf8) {
  execute("CREATE DATABASE latin_" + database + " ENCODING 'LATIN1' TEMPLATE template0");
  EXPECT_THAT(refusal(TestServer::shared().uri("latin_" + database)), HasSubstr("must be in UTF8, not LATIN1"));
}

TEST_F(PostgresTest, AUserWithoutRightsIsAMessage) {
  execute("CREATE ROLE \"guest_" + database + "\" LOGIN");
  std::string uri = place->uri;
  uri.replace(uri.find("locution@"), 8, "guest_" + database);
  EXPECT_THAT(refusal(uri), HasSubstr("permission denied"));
}

TEST_F(PostgresTest, ChangedRowsAreFoundByTheId) {
  auto store = opened(place->uri);
  RecordMaker make(*store);
  ASSERT_TRUE(*store->add(make(1)));
  execute("UPDATE locution.records SET sentence = 'another'");
  EXPECT_THAT(store->verify().status().message(), HasSubstr("is not what its id says"));
}

}  // namespace
}  // namespace locution::records

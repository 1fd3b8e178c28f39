#include "records/database.h"

namespace locution::records {

std::string textIn(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : "";
}

int64_t numberIn(const Value& value) {
  const auto* number = std::get_if<int64_t>(&value);
  return number ? *number : -1;
}

Result<std::optional<Value>> Database::one(const std::string& sql, std::span<const Value> parameters) {
  std::optional<Value> found;
  LOCUTION_RETURN_IF_ERROR(query(sql, parameters, [&](Row& row) {
    if (!found) found = std::move(row.at(0));
  }));
  return found;
}

Result<Transaction> Transaction::begin(Database& database, Database::Begin kind) {
  LOCUTION_RETURN_IF_ERROR(database.begin(kind));
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_) database_->rollback();
}

Status Transaction::commit() {
  // After a failed commit there may still be a transaction to roll back.
  LOCUTION_RETURN_IF_ERROR(database_->commit());
  database_ = nullptr;
  return Status::ok();
}

}  // namespace locution::records

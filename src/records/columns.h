// Records as rows of the table, and back.
#pragma once

#include <string>

#include "records/database.h"
#include "records/record.h"

namespace locution::records {

/// Doubles as the shortest decimal that reads back as the same bits.
std::string exactText(double value);
std::optional<double> exactDouble(std::string_view text);

/// "workload, target, ...": the columns that are a record's fields.
const std::string& recordColumns();
/// INSERT of one record; its parameters are `recordRow`. A record that is there already changes nothing.
const std::string& insertRecord();
Row recordRow(const Record& record, bool stale);
std::vector<Row> rowsOf(std::span<const Record> records);
/// From a row of `recordColumns`, which may go on. Errors: a value of the wrong kind, as in a damaged database.
Result<Record> recordOf(const Row& row);

}  // namespace locution::records

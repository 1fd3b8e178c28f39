// Recurrence: RNN, GRU and LSTM after their input projection, with packed weights (passes/split_recurrent.cpp makes it, no file has it).
// Inputs: 0 projected inputs with biases, [steps, batch, D * J * G * U] (batch first with layout = 1); 1 recurrent weights
// [D, J, hidden, G * U] of the gates that read the state; 2 for GRU only: with linear_before_reset the candidate's recurrent bias
// [D, J * U], otherwise the candidate's weights [D, J, hidden, U]; 3 none; 4 sequence_lens, 5 initial_h, 6 initial_c as in ONNX;
// 7 peepholes [D, 3, J * U]. Outputs as of the ONNX operator.
//     D: directions, J: tiles of units, G: gates, U: units of a tile (vectors * lanes); units past `hidden` are padding
// Attributes: those of the ONNX operator; cell ("RNN", "GRU", "LSTM"); lanes, vectors, rows: the register tile; tiles: the batch tiles
// (of `rows` entries) of one task.
#pragma once

#include "ops/recurrent.h"

namespace locution::ops {

struct RecurrenceTile {
  int64_t lanes = 8, vectors = 1, rows = 1, tiles = 1;
};

int64_t gatesOf(const std::string& cell);
std::vector<std::string> defaultActivations(const std::string& cell);

}  // namespace locution::ops

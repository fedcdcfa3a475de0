// SPDX-License-Identifier: Apache-2.0
// Inputs with exact results: a correct output passes for every operation and type, and each wrong element is found.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "bench/exact_values.hpp"
#include "triax/element_type.hpp"

namespace triax::bench {
namespace {

using Operation = CommOperation;

/// A view with its memory.
struct Buffer {
  Buffer(DType dtype, std::int64_t elements)
      : bytes(static_cast<std::size_t>(elements) * bytes_of(dtype)), view(bytes.data(), dtype, {elements}) {}
  std::vector<std::byte> bytes;
  TensorView view;
};

std::vector<double> numbers(const TensorView& view) {
  std::vector<double> out;
  with_type(view.dtype(), [&](auto type) {
    for (std::int64_t i = 0; i < view.elements(); ++i)
      out.push_back(static_cast<double>(static_cast<float>(view.as<decltype(type)>()[i])));
  });
  return out;
}

void put(const TensorView& view, const std::vector<double>& values) {
  with_type(view.dtype(), [&](auto type) {
    for (std::int64_t i = 0; i < view.elements(); ++i)
      view.as<decltype(type)>()[i] =
          static_cast<decltype(type)>(static_cast<float>(values[static_cast<std::size_t>(i)]));
  });
}

/// The output of `rank`, computed from all inputs as the operations are defined (communicator.hpp).
std::vector<double> output_of(Operation operation, int rank, const std::vector<std::vector<double>>& inputs) {
  const std::size_t ranks = inputs.size(), own = static_cast<std::size_t>(rank);
  std::vector<double> out;
  if (reduces(operation)) {
    out.assign(inputs[0].size(), 0);
    for (const std::vector<double>& input : inputs)
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += input[i];
    const std::ptrdiff_t part = static_cast<std::ptrdiff_t>(out.size() / ranks);
    if (operation == Operation::reduce_scatter) out = {out.begin() + rank * part, out.begin() + (rank + 1) * part};
  } else if (operation == Operation::all_gather) {
    for (const std::vector<double>& input : inputs) out.insert(out.end(), input.begin(), input.end());
  } else if (operation == Operation::all_to_all) {
    const std::size_t part = inputs[0].size() / ranks;
    for (const std::vector<double>& input : inputs)
      for (std::size_t i = 0; i < part; ++i) out.push_back(input[own * part + i]);
  } else if (operation == Operation::broadcast) {
    out = inputs[0];
  } else {
    out = inputs[(own + ranks - 1) % ranks];
  }
  return out;
}

TEST(ExactValues, AcceptCorrectOutputs) {
  for (const std::string& name : comm_operation_names())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8})
      for (const int ranks : {2, 4, 16}) {
        const Operation operation = *find_comm_operation(name);
        if (dtype == DType::u8 && reduces(operation)) continue;
        const ExactValues values(operation, dtype, ranks);
        const CommShape shape = shape_of(operation, 592 * ranks, ranks);
        std::vector<std::vector<double>> inputs;
        for (int rank = 0; rank < ranks; ++rank) {
          const Buffer input(dtype, operation == Operation::broadcast ? shape.out : shape.in);
          values.write_input(rank, input.view);
          inputs.push_back(numbers(input.view));
        }
        for (int rank = 0; rank < ranks; ++rank) {
          if (operation == Operation::send && rank % 2 == 0) continue;
          const Buffer output(dtype, shape.out);
          put(output.view, output_of(operation, rank, inputs));
          EXPECT_FALSE(values.find_wrong(rank, output.view)) << name << " of " << name_of(dtype) << ", rank " << rank;
        }
      }
}

TEST(ExactValues, FindEachWrongElement) {
  const ExactValues values(Operation::all_gather, DType::f32, 4);
  const Buffer output(DType::f32, 1024);
  std::vector<std::vector<double>> inputs;
  for (int rank = 0; rank < 4; ++rank) {
    const Buffer input(DType::f32, 256);
    values.write_input(rank, input.view);
    inputs.push_back(numbers(input.view));
  }
  const std::vector<double> good = output_of(Operation::all_gather, 2, inputs);
  for (const std::size_t at : {0u, 255u, 256u, 1023u}) {
    std::vector<double> wrong = good;
    wrong[at] += 1;
    put(output.view, wrong);
    const std::optional<WrongElement> found = values.find_wrong(2, output.view);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->element, static_cast<std::int64_t>(at));
    EXPECT_EQ(found->wrong_elements, 1);
    EXPECT_EQ(found->got, found->expected + 1);
  }
  std::vector<double> swapped(good.begin() + 256, good.begin() + 512); // blocks of two ranks at the other's position
  swapped.insert(swapped.end(), good.begin(), good.begin() + 256);
  swapped.insert(swapped.end(), good.begin() + 512, good.end());
  put(output.view, swapped);
  EXPECT_TRUE(values.find_wrong(2, output.view));
}

TEST(ExactValues, FindOutputsThatWereNotWritten) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8}) {
    const ExactValues values(Operation::exchange, dtype, 2);
    const Buffer output(dtype, 300);
    values.write_invalid(output.view);
    const std::optional<WrongElement> found = values.find_wrong(0, output.view);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->wrong_elements, 300);
  }
}

} // namespace
} // namespace triax::bench

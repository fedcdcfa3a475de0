// SPDX-License-Identifier: Apache-2.0
// Copies, fills, conversions and additions on the GPU give the same bits as on the host device.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu.hpp"
#include "support/count_allocations.hpp"
#include "triax/cuda/cuda_check.hpp"
#include "triax/half.hpp"
#include "triax/random.hpp"

namespace triax::cuda {
namespace {

constexpr DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8};

/// A view of a block: sizes, strides, and offset in elements.
struct Place {
  const char* name;
  Shape shape;
  std::array<std::int64_t, kMaxRank> strides;
  std::int64_t begin = 0;
};
constexpr std::int64_t kBlock = 6000; // elements
const Place kPlaces[] = {
    {"one", {1}, {1}},
    {"a few", {7}, {1}},
    {"many", {5000}, {1}},
    {"many, not aligned", {4999}, {1}, 1},
    {"rows", {31, 17}, {19, 1}},
    {"transposed", {31, 17}, {1, 31}},
    {"every third", {1001}, {3}, 2},
    {"four dimensions", {3, 4, 5, 6}, {400, 80, 13, 2}, 3},
};

class Moved : public Gpu {
 protected:
  /// The same bytes in host and device memory; they include floats of all magnitudes.
  struct Both {
    std::vector<std::byte> host;
    TensorView device;
  };
  Both block(DType dtype, std::uint32_t seed) {
    Both both{std::vector<std::byte>(kBlock * bytes_of(dtype)), place(DType::u8, bytes(dtype))};
    std::vector<double> numbers(kBlock);
    const PhiloxKey key = philox_key(seed, RandomPurpose::test);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = std::ldexp(static_cast<double>(uniform(philox_at(key, i, 0, 0)[i % 4])) - 0.5,
                              static_cast<int>(philox_at(key, i, 1, 0)[i % 4] % 40) - 10);
    host_->convert({both.host.data(), dtype, {kBlock}}, {numbers.data(), DType::f64, {kBlock}}, *host_stream_);
    device->upload(both.device, {both.host.data(), DType::u8, bytes(dtype)}, *stream);
    finish();
    return both;
  }
  static Shape bytes(DType dtype) { return {kBlock * static_cast<std::int64_t>(bytes_of(dtype))}; }
  static TensorView at(void* data, DType dtype, const Place& of) {
    return {static_cast<std::byte*>(data) + of.begin * static_cast<std::int64_t>(bytes_of(dtype)), dtype, of.shape,
            of.strides};
  }
  TensorView on_host(Both& both, DType dtype, const Place& of) { return at(both.host.data(), dtype, of); }
  TensorView on_device(const Both& both, DType dtype, const Place& of) { return at(both.device.data(), dtype, of); }
  void expect_same(const Both& both, const std::string& what) {
    EXPECT_TRUE(values<std::byte>(both.device) == both.host) << what;
  }
  /// In f16 the larger numbers are infinite, and inf - inf is a NaN, whose sign each processor chooses.
  void expect_same_numbers_or_nan(const Both& both, const std::string& what) {
    const auto one_nan = [](std::vector<std::byte> bytes) {
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(F16)) {
        F16 number;
        std::memcpy(&number, &bytes[at], sizeof number);
        if (std::isnan(static_cast<float>(number))) bytes[at] = bytes[at + 1] = std::byte{0x7F};
      }
      return bytes;
    };
    EXPECT_TRUE(one_nan(values<std::byte>(both.device)) == one_nan(both.host)) << what;
  }

  std::unique_ptr<Device> host_ = make_host_device();
  std::unique_ptr<Stream> host_stream_ = host_->make_stream("host");
};

/// Calls body for every view, combined with a contiguous view of the same sizes and with itself.
template <class Body>
void for_places(Body body) {
  for (const Place& to : kPlaces) {
    Place packed{to.name, to.shape, {}};
    std::int64_t step = 1;
    for (int dim = to.shape.rank() - 1; dim >= 0; --dim) {
      packed.strides[static_cast<std::size_t>(dim)] = step;
      step *= to.shape[dim];
    }
    body(to, packed);
    body(packed, to);
    body(to, to);
  }
}

TEST_F(Moved, CopiesFillsAndAdds) {
  for (const DType dtype : kAll) {
    for_places([&](const Place& to, const Place& from) {
      const std::string what = text("{}, {}", name_of(dtype), to.name);
      Both a = block(dtype, 1), b = block(dtype, 2);
      device->copy(on_device(a, dtype, to), on_device(b, dtype, from), *stream);
      host_->copy(on_host(a, dtype, to), on_host(b, dtype, from), *host_stream_);
      expect_same(a, what + ": copy");
      device->add(on_device(a, dtype, from), on_device(b, dtype, to), *stream);
      host_->add(on_host(a, dtype, from), on_host(b, dtype, to), *host_stream_);
      dtype == DType::f16 ? expect_same_numbers_or_nan(a, what + ": add") : expect_same(a, what + ": add");
      for (const double value : {0.0, 5.0, 1 + 0x1p-9 + 0x1p-40, 255.0}) {
        device->fill(on_device(b, dtype, to), value, *stream);
        host_->fill(on_host(b, dtype, to), value, *host_stream_);
        expect_same(b, text("{}: fill with {}", what, value));
      }
    });
  }
}

TEST_F(Moved, ConvertsEveryPairOfTypes) {
  for (const DType to_type : kAll) {
    for (const DType from_type : kAll) {
      for_places([&](const Place& to, const Place& from) {
        Both a = block(to_type, 1), b = block(from_type, 2);
        device->convert(on_device(a, to_type, to), on_device(b, from_type, from), *stream);
        host_->convert(on_host(a, to_type, to), on_host(b, from_type, from), *host_stream_);
        expect_same(a, text("{} to {}, {}", name_of(from_type), name_of(to_type), to.name));
      });
    }
  }
}

TEST_F(Moved, AddsHalvesToFloats) {
  for (const DType half : {DType::bf16, DType::f16}) {
    for_places([&](const Place& to, const Place& from) {
      Both a = block(DType::f32, 1), b = block(half, 2);
      device->add(on_device(a, DType::f32, to), on_device(b, half, from), *stream);
      host_->add(on_host(a, DType::f32, to), on_host(b, half, from), *host_stream_);
      expect_same(a, text("{}, {}", name_of(half), to.name));
    });
  }
}

TEST_F(Moved, BetweenHostAndDeviceInAllStrides) {
  for_places([&](const Place& to, const Place& from) {
    for (const MemoryKind kind : {MemoryKind::host, MemoryKind::pinned}) {
      Both a = block(DType::f32, 1), b = block(DType::f32, 2);
      const TensorView staged = place(DType::u8, bytes(DType::f32), kind);
      std::memcpy(staged.data(), b.host.data(), b.host.size());
      device->upload(on_device(a, DType::f32, to), at(staged.data(), DType::f32, from), *stream);
      host_->copy(on_host(a, DType::f32, to), on_host(b, DType::f32, from), *host_stream_);
      expect_same(a, text("{}: upload", to.name));
      device->download(at(staged.data(), DType::f32, from), on_device(a, DType::f32, to), *stream);
      finish();
      host_->copy(on_host(b, DType::f32, from), on_host(a, DType::f32, to), *host_stream_);
      EXPECT_EQ(std::memcmp(staged.data(), b.host.data(), b.host.size()), 0) << to.name << ": download";
    }
  });
}

/// The native stream takes a limited number of calls behind a wait for the host. Each piece of a copy is a call.
TEST_F(Moved, PiecesBehindAWaitForTheHostAreCounted) {
  const TensorView from = place(DType::f32, {2, 300}, MemoryKind::pinned), to = place(DType::f32, {300, 2});
  std::memset(from.data(), 0, from.bytes());
  HostEvent event;
  const auto copy = [&](std::int64_t columns) {
    const TensorView transposed(from.data(), DType::f32, {columns, 2}, {1, 300});
    device->upload(TensorView(to.data(), DType::f32, {columns, 2}), transposed, *stream);
  };
  stream->wait(event.arm());
  device->set_default_timeout(0.05);
  EXPECT_THROW(copy(300), Error) << "300 pieces, and the wait is not over";
  device->set_default_timeout(60);
  event.fire();
  copy(300);
  finish();
}

/// A steady step does not allocate. CUDA's own calls are counted separately, because those of the GPU stand-in do.
TEST_F(Moved, UploadsAndDownloadsDoNotAllocate) {
  constexpr std::size_t kCopies = 100;
  // The least of several attempts: how often the runtime allocates depends on time.
  const auto allocations_in = [&](auto copy) {
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (int attempt = 0; attempt < 5; ++attempt) {
      copy();
      finish();
      const std::size_t before = test::allocations();
      for (std::size_t i = 0; i < kCopies; ++i) copy();
      least = std::min(least, test::allocations() - before);
      finish();
    }
    return least;
  };
  const TensorView host = place(DType::f32, {30, 20}, MemoryKind::pinned), packed = place(DType::f32, {30, 20});
  std::memset(host.data(), 0, host.bytes());
  const TensorView rows(place(DType::f32, {30, 32}).data(), DType::f32, {30, 20}, {32, 1});
  for (const TensorView& on_device : {packed, rows}) {
    const std::size_t of_cuda = allocations_in([&] {
      cudaPointerAttributes attributes{};
      TRIAX_CUDA(cudaPointerGetAttributes(&attributes, host.data()));
      const std::size_t row = 20 * sizeof(float), pitch = static_cast<std::size_t>(on_device.stride(0)) * sizeof(float);
      if (pitch == row) {
        TRIAX_CUDA(cudaMemcpyAsync(on_device.data(), host.data(), host.bytes(), cudaMemcpyHostToDevice,
                                   launch_stream(*stream)));
      } else {
        TRIAX_CUDA(cudaMemcpy2DAsync(on_device.data(), pitch, host.data(), row, row, 30, cudaMemcpyHostToDevice,
                                     launch_stream(*stream)));
      }
    });
    EXPECT_LT(allocations_in([&] { device->upload(on_device, host, *stream); }), of_cuda + kCopies);
    EXPECT_LT(allocations_in([&] { device->download(host, on_device, *stream); }), of_cuda + kCopies);
  }
}

TEST_F(Moved, WhereAViewIsEmptyNothingMoves) {
  const TensorView a = place(DType::f32, {4, 0, 3}), b = place(DType::f32, {4, 0, 3});
  device->copy(a, b, *stream);
  device->add(a, b, *stream);
  device->convert(a, b, *stream);
  device->upload(a, b, *stream);
  device->fill(a, 1, *stream);
  finish();
}

TEST_F(Moved, OtherSizesAndTypesAreRefusedAsOnTheHost) {
  const TensorView a = place(DType::f32, {2, 3}), b = place(DType::f32, {3, 2}), c = place(DType::f64, {2, 3});
  EXPECT_THROW(device->copy(a, b, *stream), Error);
  EXPECT_THROW(device->copy(a, c, *stream), Error);
  EXPECT_THROW(device->upload(a, c, *stream), Error);
  EXPECT_THROW(device->add(a, c, *stream), Error);
  EXPECT_THROW(device->convert(a, b, *stream), Error);
}

} // namespace
} // namespace triax::cuda

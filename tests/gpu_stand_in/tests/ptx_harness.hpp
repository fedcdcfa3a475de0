// SPDX-License-Identifier: Apache-2.0
// Helpers of the interpreter's tests: device buffers, launches of PTX text, and single instructions over rows of
// operands.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "gpu_stand_in/machine.hpp"

namespace triax::test {

namespace gsi = gpu_stand_in;

inline std::string module_of(const std::string& text) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + text;
}

// A kernel of one warp or more; %out is the address of this thread's word (4 bytes), %l its lane.
inline std::string warp_kernel(const std::string& body, const std::string& before = "") {
  return before +
         ".visible .entry k(.param .u64 in, .param .u64 result)\n{\n.reg .b32 %t, %l, %r<12>;\n.reg .b64 %in, %out, "
         "%x<4>;\n"
         ".reg .b16 %h<4>;\n.reg .f32 %f<16>;\n.reg .pred %p<4>;\nld.param.u64 %in, [in];\nld.param.u64 %out, "
         "[result];\nmov.u32 %t, %tid.x;\n"
         "and.b32 %l, %t, 31;\nmul.wide.u32 %x0, %t, 4;\nadd.s64 %out, %out, %x0;\n" +
         body + "\nret;\n}\n";
}

// A kernel of two pointers: %a is the first plus 4 bytes for each thread of the grid, %b likewise the second.
inline std::string grid_kernel(const std::string& body) {
  return ".visible .entry k(.param .u64 first, .param .u64 second)\n{\n.reg .b64 %a, %b, %x;\n.reg .b32 %r<8>;\n"
         ".reg .f32 %f<4>;\n.reg .pred %p<4>;\nld.param.u64 %a, [first];\nld.param.u64 %b, [second];\n"
         "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmad.lo.u32 %r3, %r1, %r2, %r0;\n"
         "mul.wide.u32 %x, %r3, 4;\nadd.s64 %a, %a, %x;\nadd.s64 %b, %b, %x;\n" +
         body + "\nret;\n}\n";
}

// One device and the kernels of one PTX text.
class Machine {
 public:
  explicit Machine(const std::string& text)
      : memory(std::size_t{1} << 26), module_(gsi::read_module(module_of(text))) {}

  // A buffer that holds `values`.
  template <class T>
  std::uint64_t buffer(const std::vector<T>& values, const std::string& name = "buffer") {
    const std::uint64_t at = unwritten(values.size() * sizeof(T), name);
    std::memcpy(memory.alias(at), values.data(), values.size() * sizeof(T));
    memory.mark_written(at, values.size() * sizeof(T));
    return at;
  }
  std::uint64_t unwritten(std::size_t bytes, const std::string& name = "buffer") { return *memory.map(bytes, name); }

  template <class T>
  std::vector<T> read(std::uint64_t at, std::size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), memory.alias(at), count * sizeof(T));
    return values;
  }

  // Parameters are all .u64.
  void run(const std::string& kernel, gsi::Dim3 grid, gsi::Dim3 block, const std::vector<std::uint64_t>& params,
           std::size_t dynamic_shared = 0) {
    launch.kernel = module_->find(kernel);
    ASSERT_NE(launch.kernel, nullptr) << kernel;
    launch.grid = grid;
    launch.block = block;
    launch.dynamic_shared_bytes = dynamic_shared;
    launch.params = std::as_bytes(std::span(params));
    launch.counts = &counts;
    gsi::run(launch, memory);
  }

  // The message of the error that the launch ends with; its kind is left in `kind`. Empty: no error.
  std::string error_of(const std::string& kernel, gsi::Dim3 grid, gsi::Dim3 block,
                       const std::vector<std::uint64_t>& params, std::size_t dynamic_shared = 0) {
    try {
      run(kernel, grid, block, params, dynamic_shared);
    } catch (const gsi::MachineError& e) {
      kind = e.kind;
      return e.what();
    }
    return "";
  }

  gsi::DeviceMemory memory;
  gsi::Launch launch;
  gsi::Profile counts;
  gsi::ErrorKind kind{};

 private:
  std::shared_ptr<const gsi::Module> module_;
};

using Row = std::array<std::uint64_t, 4>;

inline int bits_of(const std::string& type) {
  return std::stoi(type.substr(type.find_first_of("0123456789")));
}

// Runs `instruction` for each row of operands, one thread each, and returns its results. $d is the result, $a to $d
// the operands; $1 to $4 their names in the text. Types: b16, b32, b64, f32, f64, pred (0 or 1).
inline std::vector<std::uint64_t> evaluate(const std::string& instruction, const std::string& result,
                                           const std::vector<std::string>& operands, const std::vector<Row>& rows) {
  std::string text =
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %base<4>;\n.reg .b32 %tmp<8>;\n"
      "ld.param.u64 %base0, [in];\nld.param.u64 %base1, [out];\nmov.u32 %tmp0, %tid.x;\n"
      "mul.wide.u32 %base2, %tmp0, 32;\nadd.s64 %base0, %base0, %base2;\n"
      "mul.wide.u32 %base2, %tmp0, 8;\nadd.s64 %base1, %base1, %base2;\n";
  std::string body = instruction;
  auto replace = [&](const std::string& from, const std::string& to) {
    for (auto at = body.find(from); at != std::string::npos; at = body.find(from)) body.replace(at, from.size(), to);
  };
  for (std::size_t n = 0; n < operands.size(); ++n) {
    const std::string name = "%in" + std::to_string(n), from = "[%base0+" + std::to_string(8 * n) + "]";
    text += ".reg ." + operands[n] + " " + name + ";\n";
    if (operands[n] == "pred")
      text += "ld.global.u32 %tmp1, " + from + ";\nsetp.ne.u32 " + name + ", %tmp1, 0;\n";
    else
      text += "ld.global.b" + std::to_string(bits_of(operands[n])) + " " + name + ", " + from + ";\n";
    replace("$" + std::to_string(n + 1), name);
  }
  replace("$d", "%result");
  text += ".reg ." + result + " %result;\nmov.b64 %base3, 0;\nst.global.b64 [%base1], %base3;\n" + body + ";\n";
  if (result == "pred")
    text += "selp.u32 %tmp2, 1, 0, %result;\nst.global.u32 [%base1], %tmp2;\n";
  else
    text += "st.global.b" + std::to_string(bits_of(result)) + " [%base1], %result;\n";
  Machine machine(text + "ret;\n}\n");
  const auto in = machine.buffer(rows), out = machine.unwritten(8 * rows.size());
  // Blocks of at most 1024 threads would do; rows of tests are fewer.
  EXPECT_LE(rows.size(), 1024u);
  machine.run("k", {}, {static_cast<unsigned>(rows.size())}, {in, out});
  return machine.read<std::uint64_t>(out, rows.size());
}

inline std::uint64_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}

} // namespace triax::test

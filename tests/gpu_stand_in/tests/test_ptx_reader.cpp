// SPDX-License-Identifier: Apache-2.0
// What the PTX reader refuses, and launches that do not fit their kernel.
#include <gmock/gmock.h>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& body) {
  try {
    gsi::read_module(
        module_of(".entry k(.param .u64 p)\n{\n.reg .b32 %r<4>;\n.reg .b64 %x;\n.reg .f32 %f;\n.reg .pred %q;\n" +
                  body + "\nret;\n}\n"))
        ->find("k");
  } catch (const gsi::PtxError& e) {
    return e.what();
  }
  return "";
}

} // namespace

TEST(PtxReader, RefusesUnknownPtx) {
  EXPECT_EQ(refusal("add.u32 %r0, %r1, %r2;"), "");
  EXPECT_THAT(refusal("sad.u32 %r0, %r1, %r2, %r3;"),
              AllOf(HasSubstr("PTX line 10"), HasSubstr("unknown instruction: sad.u32"), HasSubstr("kernel k")));
  EXPECT_THAT(refusal("add.wild.u32 %r0, %r1, %r2;"), HasSubstr("unknown modifier .wild"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1, %r9;"), HasSubstr("unknown register: %r9"));
  EXPECT_THAT(refusal("bra NOWHERE;"), HasSubstr("unknown label: NOWHERE"));
  EXPECT_THAT(refusal("mov.u64 %x, nothing;"), HasSubstr("unknown symbol: nothing"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1, %x;"), HasSubstr("another width"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1, %q;"), HasSubstr("predicate"));
  EXPECT_THAT(refusal("mul.lo.b8 %r0, %r1, %r2;"), HasSubstr("not supported with these types"));
  EXPECT_THAT(refusal("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f}, {%r0}, {%r1}, {%f};"),
              HasSubstr("unknown modifier"));
  EXPECT_THAT(refusal("shfl.bfly.b32 %r0, %r1, 1, 31;"), HasSubstr("without .sync"));
  EXPECT_THAT(refusal("setp.eq.and.u32 %q, %r0, %r1, %q;"), HasSubstr("unknown modifier .and"));
  EXPECT_THAT(refusal("call.uni far, (p);"), HasSubstr("unknown function: far"));
  EXPECT_THAT(refusal(".surfref s;"), HasSubstr("unknown directive"));
  EXPECT_THAT(refusal("add.u32 %r0, %r1, \x01;"), HasSubstr("unknown character"));
}

TEST(PtxReader, ReadsTheDeclarationsOfKernels) {
  const auto module =
      gsi::read_module(module_of(".shared .align 16 .b8 tile[100];\n.visible .entry k(.param .u32 a, .param .align 16 "
                                 ".b8 b[24], .param .u64 c)\n.maxntid 128, 2, 1\n.minnctapersm 3\n"
                                 "{\n.reg .b32 %r;\n.local .align 8 .b8 depot[20];\nmov.u32 %r, tile;\nret;\n}\n.entry "
                                 "r()\n.reqntid 64, 1, 1\n{\nret;\n}\n"));
  EXPECT_EQ(module->find("other"), nullptr);
  EXPECT_EQ(module->kernel_names().size(), 2u);
  const gsi::Kernel& k = *module->find("k");
  ASSERT_EQ(k.params.size(), 3u);
  EXPECT_EQ(k.params[1].offset, 16u);
  EXPECT_EQ(k.params[2].offset, 40u);
  EXPECT_EQ(k.param_bytes, 48u);
  EXPECT_EQ(k.static_shared_bytes, 112u);
  EXPECT_EQ(k.local_bytes, 32u);
  EXPECT_EQ(k.max_threads.count(), 256u);
  EXPECT_EQ(k.min_blocks_per_sm, 3u);
  EXPECT_EQ(module->find("r")->required_threads.x, 64u);
}

TEST(PtxReader, LaunchesThatDoNotFit) {
  Machine m(
      ".entry k(.param .u64 p)\n.maxntid 64, 1, 1\n{\nret;\n}\n.entry r(.param .u64 p)\n.reqntid 32, 1, "
      "1\n{\nret;\n}\n");
  EXPECT_EQ(m.error_of("k", {1}, {64}, {0}), "");
  EXPECT_THAT(m.error_of("k", {1}, {65}, {0}), HasSubstr("compiled for at most 64"));
  EXPECT_THAT(m.error_of("k", {1}, {2000}, {0}), HasSubstr("1 to 1024"));
  EXPECT_THAT(m.error_of("k", {0}, {32}, {0}), HasSubstr("has no block"));
  EXPECT_THAT(m.error_of("k", {1}, {32}, {0, 0}), HasSubstr("the kernel takes 8"));
  EXPECT_THAT(m.error_of("r", {1}, {64}, {0}), HasSubstr("compiled for (32, 1, 1)"));
  EXPECT_EQ(m.kind, gsi::ErrorKind::kLaunch);
}

} // namespace triax::test

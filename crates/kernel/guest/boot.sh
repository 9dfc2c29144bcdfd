#!/bin/sh
# Boots the fetched kernel under QEMU with a first file system, and waits until it turns itself off.
# Time in the guest goes on by the instructions that it executes (icount), not by the clock of this
# machine: what else runs here changes nothing there.
# Usage: sh crates/kernel/guest/boot.sh DIRECTORY INITRAMFS OUTPUT [xeon]; what the guest writes to
# its port goes into OUTPUT, its console to standard output. It has 4 processors, or with `xeon` the
# 24 of the machine of 002 and 003: 4 sockets that share an L3 each, of 3 pairs that share an L2.
# TRACE=sched:sched_switch,… has the kernel's tracer on; each case brings out what it has seen.
# WARMSET_GUEST_KERNEL names another kernel than the fetched one.
set -eu
fetched=$1
initramfs=$2
output=$3
# A metronome. QEMU emulates one processor at a time, each up to the next event of any virtual clock
# divided by the number of processors: that may be milliseconds, in which a processor that is called
# does not come. The periodic interrupt of the clock of a PC is such an event: this extension of the
# firmware turns it on, every 122 us or, with many processors, every 244 us. The kernel is told to
# leave that clock alone, so that nobody takes the interrupt, and it takes no time.
#
# All processors share the instructions that are executed: one in 2 ns, or in 1 ns where they are many.
rom="$initramfs.rom"
metronome() {
    printf '\125\252\001\260\012\346\160\260'"$1"'\346\161\260\013\346\160\260\102\346\161\313'
    head -c 491 /dev/zero
    printf "$2"
}
case ${4:-} in
xeon)
    metronome '\044' '\240' >"$rom"
    speed=0
    caches="smp-cache.0.cache=l2,smp-cache.0.topology=module"
    caches="$caches,smp-cache.1.cache=l3,smp-cache.1.topology=socket"
    processors="-machine pc,$caches -smp 24,sockets=4,modules=3,cores=2,threads=1"
    # A model that tells of caches as Intel's do.
    processors="$processors -cpu qemu64,vendor=GenuineIntel,level=11"
    ;;
*)
    metronome '\043' '\241' >"$rom"
    speed=1
    processors="-smp 4"
    ;;
esac
kernel=${WARMSET_GUEST_KERNEL:-$(ls "$fetched"/linux/boot/vmlinuz-*)}
share="$fetched/tools/usr/share"
console="console=ttyS0 quiet panic=-1"
# What costs a slow guest time and is of no use in it.
quick="lpj=10000000 tsc=reliable mitigations=off nokaslr no_timer_check nowatchdog \
rcupdate.rcu_expedited=1 cryptomgr.notests random.trust_cpu=on audit=0 numa=off"
# DAMON looks at memory for milliseconds on end, in a thread that goes before jobs.
quick="$quick initcall_blacklist=cmos_init damon_stat.enabled=0"
# Two more that do: vmstat_update gives back what processors keep of freed memory, each second, for up
# to 4 ms after the boot and after a case; khugepaged makes large pages of small ones, for 7 ms.
quick="$quick sysctl.vm.stat_interval=3600 transparent_hugepage=never"
# The kernel's own tracer, for finding out who had a processor when a decision was late.
if [ -n "${TRACE:-}" ]; then quick="$quick trace_event=$TRACE trace_clock=mono trace_buf_size=16M"; fi
# shellcheck disable=SC2086 # options
exec timeout --foreground "${WARMSET_GUEST_SECONDS:-2400}" sh "$(dirname "$0")/tool.sh" "$fetched" \
    qemu-system-x86_64 -L "$share/qemu" -L "$share/seabios" \
    -accel tcg,thread=single -icount "shift=$speed,sleep=off,align=off" -rtc base=2026-01-01,clock=vm \
    $processors -option-rom "$rom" -m 1G -nodefaults -no-user-config -display none -serial stdio -no-reboot \
    -kernel "$kernel" -initrd "$initramfs" -append "$console $quick" \
    -device virtio-serial-pci -chardev "file,id=c0,path=$output" \
    -device virtserialport,chardev=c0,name=trace

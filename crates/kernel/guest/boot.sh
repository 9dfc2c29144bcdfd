#!/bin/sh
# Boots the fetched kernel under QEMU with a first file system, and waits until it turns itself off.
# Time in the guest goes on by the instructions that it executes (icount), not by the clock of this
# machine: what else runs here changes nothing there.
# Usage: sh crates/kernel/guest/boot.sh DIRECTORY INITRAMFS OUTPUT [PROCESSORS]; what the guest
# writes to its port goes into OUTPUT, its console to standard output.
set -eu
fetched=$1
initramfs=$2
output=$3
processors=${4:-4}
kernel=$(ls "$fetched"/linux/boot/vmlinuz-*)
share="$fetched/tools/usr/share"
console="console=ttyS0 quiet panic=-1"
# What costs a slow guest time and is of no use in it.
quick="lpj=10000000 tsc=reliable mitigations=off nokaslr no_timer_check nowatchdog \
rcupdate.rcu_expedited=1 cryptomgr.notests random.trust_cpu=on audit=0 numa=off"
exec timeout "${WARMSET_GUEST_SECONDS:-900}" sh "$(dirname "$0")/tool.sh" "$fetched" \
    qemu-system-x86_64 -L "$share/qemu" -L "$share/seabios" \
    -accel tcg,thread=single -icount shift=2,sleep=off,align=off -rtc base=2026-01-01,clock=vm \
    -smp "$processors" -m 1G -nodefaults -no-user-config -display none -serial stdio -no-reboot \
    -kernel "$kernel" -initrd "$initramfs" -append "$console $quick" \
    -device virtio-serial-pci -chardev "file,id=c0,path=$output" \
    -device virtserialport,chardev=c0,name=trace

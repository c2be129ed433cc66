# A real Slurm of two nodes on this machine, on loopback, with everything of its
# own in $1. Sourced; stop_cluster ends it. It takes root, slurm-wlm and munge.

start_cluster() {
	local dir=$1 base=${2:-28400} i
	export SLURM_CONF=$dir/slurm.conf
	chmod 755 "$dir"
	mkdir -p "$dir/state" "$dir/spool-n1" "$dir/spool-n2"
	for i in 0 1 2 3; do mknod "$dir/gpu$i" c 1 3; done # stand in for /dev/nvidiaN
	dd if=/dev/urandom of="$dir/munge.key" bs=1 count=1024 status=none
	chmod 400 "$dir/munge.key"
	cat >"$SLURM_CONF" <<-X
		ClusterName=mini
		SlurmctldHost=$(hostname)(127.0.0.1)
		SlurmctldPort=$base
		SlurmUser=root
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge.sock
		CredType=cred/munge
		MpiDefault=none
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		SwitchType=switch/none
		ReturnToService=2
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool-%n
		SlurmctldPidFile=$dir/ctld.pid
		SlurmdPidFile=$dir/slurmd-%n.pid
		SlurmctldLogFile=$dir/ctld.log
		SlurmdLogFile=$dir/slurmd-%n.log
		SchedulerType=sched/backfill
		SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core_Memory
		DefMemPerNode=100
		SlurmdParameters=config_overrides
		GresTypes=gpu
		KillWait=30
		InactiveLimit=0
		JobRequeue=1
		NodeName=n[1-2] NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=[$((base + 1))-$((base + 2))] CPUs=4 RealMemory=1000 Gres=gpu:2
		PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
	X
	printf 'NodeName=n1 Name=gpu File=%s/gpu[0-1]\nNodeName=n2 Name=gpu File=%s/gpu[2-3]\n' "$dir" "$dir" >"$dir/gres.conf"
	munged --force --foreground --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
		--log-file="$dir/munged.log" --seed-file="$dir/munge.seed" >"$dir/munged.out" 2>&1 &
	cluster=($!)
	eventually 20 "munge answers" test -S "$dir/munge.sock"
	slurmctld -D -f "$SLURM_CONF" >"$dir/ctld.out" 2>&1 &
	cluster+=($!)
	for i in n1 n2; do
		slurmd -D -N "$i" -f "$SLURM_CONF" >"$dir/$i.out" 2>&1 &
		cluster+=($!)
	done
	eventually 60 "both nodes are idle" bash -c '[ "$(sinfo -h -o %T | sort -u)" = idle ]'
}

stop_cluster() {
	[ ${#cluster[@]} -gt 0 ] || return 0
	scancel -u root 2>/dev/null || true
	kill "${cluster[@]}" 2>/dev/null || true
	sleep 1
	kill -9 "${cluster[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
}
cluster=()

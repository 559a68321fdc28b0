import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';
import { EmbeddedSource } from './data/source';
import { choices } from './state/choices.svelte';

const target = document.getElementById('pgdyno-app');
if (target) {
  choices.follow();
  mount(App, { target, props: { source: new EmbeddedSource(document) } });
}
